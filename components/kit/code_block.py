"""Code on the page, as Markdown that colours it and has a button to copy it."""


def make_code_block(code: str, language: str) -> str:
    """Markdown of some code, for a `gr.Markdown`.

    Args:
        code: Lines without a fence of four backticks.
        language: What colours them: python, bash.
    """
    return f"````{language}\n{code.rstrip()}\n````"
