"""The house rules that a machine can check: arrows of import, sizes, names, nothing at import."""

import ast
import os
import socket
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
LAYERS = ("models", "explorer", "components")
SOURCES = sorted(
    [ROOT / "app.py", *(path for layer in LAYERS for path in (ROOT / layer).rglob("*.py"))]
)
ALL_FILES = [*SOURCES, *sorted((ROOT / "tests").rglob("*.py"))]

# Which packages a layer may not import. `explorer` re-exports what the page needs of `models`.
FORBIDDEN = {
    "models": {"explorer", "components", "app", "gradio", "plotly", "pandas"},
    "explorer": {"components", "app", "gradio", "plotly"},
    "components": {"models", "torch", "app"},
    "app.py": {"models", "torch"},
}
TORCH_FREE = (
    "__init__",
    "config",
    "config_json",
    "costs",
    "counting",
    "errors",
    "family",
    "gguf_file",
)
TORCH_FREE += (
    "gguf_file",
    "hf_layout",
    "hub",
    "json_files",
    "mla_config",
    "registry",
    "rope_config",
)
TORCH_FREE += ("saving_layout", "source_tokenizer", "sources", "weight_files")
MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 60


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def tree_of(path: Path) -> ast.Module:
    """Parsed once: several rules look at each file."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def imported_modules(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module or ""


def runtime_statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements that run on import, without those for type checkers only."""
    for node in body:
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        yield node


def find_wrong_imports(layer: str, source: str) -> set[str]:
    return find_forbidden(layer, ast.parse(source))


def find_forbidden(layer: str, tree: ast.Module) -> set[str]:
    packages = {name.partition(".")[0] for name in imported_modules(tree)}
    return packages & FORBIDDEN[layer]


def offenders(paths: Iterable[Path], find: Callable[[Path], Any]) -> dict[str, Any]:
    """What a rule finds in the files that break it: one test a rule, hundreds of files a second."""
    found = {name_of(path): find(path) for path in paths}
    return {name: what for name, what in found.items() if what}


def test_arrows_of_import_point_one_way() -> None:
    def find(path: Path) -> set[str]:
        return find_forbidden(path.relative_to(ROOT).parts[0], tree_of(path))

    assert offenders(SOURCES, find) == {}


def test_a_wrong_import_is_found_wherever_it_stands() -> None:
    source = "def f():\n    import torch.nn\n    from models.config import ModelConfig\n"
    assert find_wrong_imports("components", source) == {"torch", "models"}


def test_the_light_part_of_models_imports_no_torch_at_all() -> None:
    def find(path: Path) -> set[str]:
        statements = runtime_statements(tree_of(path).body)
        modules = (module for node in statements for module in imported_modules(node))
        return {module.partition(".")[0] for module in modules} & {"torch"}

    assert offenders((ROOT / "models" / f"{name}.py" for name in TORCH_FREE), find) == {}


def functions_of(path: Path) -> Iterator[tuple[str, int]]:
    """Name and lines of each function."""
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, (node.end_lineno or 0) - node.lineno + 1


def test_files_and_functions_are_short() -> None:
    def find(path: Path) -> list[tuple[str, int]]:
        n_lines = path.read_text(encoding="utf-8").count("\n")
        whole = [("the file", n_lines)] if n_lines > MAX_FILE_LINES else []
        return whole + [(name, n) for name, n in functions_of(path) if n > MAX_FUNCTION_LINES]

    assert offenders(ALL_FILES, find) == {}


def test_functions_are_short_in_general() -> None:
    lengths = sorted(n for path in SOURCES for _, n in functions_of(path))
    assert lengths[len(lengths) // 2] <= 12


def test_no_file_is_a_drawer_for_anything() -> None:
    drawers = {"utils.py", "helpers.py", "misc.py", "common.py"}
    assert [name_of(path) for path in ALL_FILES if path.name in drawers] == []


def find_import_time_work(tree: ast.Module) -> list[str]:
    """Statements at module level that do more than define."""
    found = []
    for node in tree.body:
        if isinstance(node, ast.For | ast.While | ast.With | ast.Global):
            found.append(ast.unparse(node).splitlines()[0])
        elif _is_call(node) or _is_empty_state(node):
            found.append(ast.unparse(node))
    return found


def _is_call(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)


def _is_empty_state(node: ast.stmt) -> bool:
    return isinstance(node, ast.Assign | ast.AnnAssign) and _is_empty_container(node.value)


def _is_empty_container(value: ast.expr | None) -> bool:
    """An empty list, dict or set at module level is there to be filled: state of the process."""
    if isinstance(value, ast.List):
        return not value.elts
    if isinstance(value, ast.Dict):
        return not value.keys
    is_call = isinstance(value, ast.Call) and isinstance(value.func, ast.Name)
    return is_call and value.func.id in {"list", "dict", "set"} and not value.args


def test_importing_does_nothing_but_define() -> None:
    assert offenders(SOURCES, lambda path: find_import_time_work(tree_of(path))) == {}


def test_import_time_work_is_found() -> None:
    source = "import os\nCACHE = {}\nprint('x')\nfor i in range(3):\n    pass\nNAMES = ('a',)\n"
    assert len(find_import_time_work(ast.parse(source))) == 3


def run_python(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        cwd=ROOT,
        env={**os.environ, "GRADIO_ANALYTICS_ENABLED": "False"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_help_imports_neither_torch_nor_gradio() -> None:
    code = """
        import sys, app
        try:
            app.main(["--help"])
        except SystemExit as end:
            assert end.code == 0
        heavy = {"torch", "gradio", "numpy", "transformers"} & set(sys.modules)
        print("heavy:", sorted(heavy))
    """
    assert "heavy: []" in run_python(code)


def test_torch_is_not_imported_after_the_page_is_served() -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    code = f"""
        import sys, threading, time, urllib.request, os, signal
        import app

        def look():
            address = "http://127.0.0.1:{port}/"
            for _ in range(600):
                try:
                    page = urllib.request.Request(address, headers={{"Accept": "text/html"}})
                    text = urllib.request.urlopen(page).read().decode()
                    break
                except OSError:
                    time.sleep(0.1)
            # one string: Gradio's own lines cannot come in between
            served, torch = "gradio_config" in text, "torch" in sys.modules
            print(f"served: {{served}} torch: {{torch}}\\n", flush=True)
            os._exit(0)

        threading.Thread(target=look, daemon=True).start()
        app.main(["--port", "{port}"])
    """
    assert "served: True torch: False" in run_python(code)
