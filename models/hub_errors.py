"""What can go wrong with a repository on the Hugging Face Hub, said in words a reader can act on.

`MESSAGES` holds the English sentence of every code; the page takes the translated sentence of the
same code from `assets/text/<locale>/errors.json`. `translated_errors` turns what huggingface_hub,
its HTTP client and the disk raise into a `SourceError` with one of these codes.
"""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
from huggingface_hub.errors import (
    GatedRepoError,
    HfHubHTTPError,
    OfflineModeIsEnabled,
    RemoteEntryNotFoundError,
    RevisionNotFoundError,
)

from models.errors import SourceError

_BAD_TOKEN = "Invalid credentials in Authorization header"  # as the Hub words it in a header

MESSAGES: dict[str, str] = {
    "hub-invalid-id": (
        "'{text}' is not the id of a model on the Hugging Face Hub. Write it as owner/name, for"
        " example HuggingFaceTB/SmolLM2-135M-Instruct, or paste the address of the model's page."
    ),
    "hub-offline": (
        "{repository} is not complete in the local cache, and HF_HUB_OFFLINE forbids downloading"
        " it. Start the app without HF_HUB_OFFLINE (and TRANSFORMERS_OFFLINE), or choose a model"
        " that is on this machine."
    ),
    "hub-unreachable": (
        "{repository} cannot be downloaded: {endpoint} cannot be reached ({reason}). Check the"
        " network, the proxy and HF_ENDPOINT and try again, or choose a model that is on this"
        " machine."
    ),
    "hub-bad-answer": (
        "{endpoint} answered a request for {repository}, but not as a Hugging Face Hub does"
        " ({reason}). Check HF_ENDPOINT and whether the network asks for a login first."
    ),
    "hub-server-error": (
        "{endpoint} answered a request for {repository} with status {status}. The fault is on its"
        " side or it is busy: try again in a few minutes."
    ),
    "hub-not-found": (
        "There is no model {repository} on {endpoint}. Check the spelling, upper and lower case"
        " included; search for it at {endpoint}/models."
    ),
    "hub-no-access": (
        "{repository} does not exist on {endpoint}, or it is private or asks for consent. Check"
        " the spelling. If it is right, visit {page}, ask for access there, and give this app a"
        " token: set HF_TOKEN or run `hf auth login`."
    ),
    "hub-gated": (
        "{repository} is gated: its owner wants you to accept terms first. Visit {page}, ask for"
        " access there, and give this app a token of the same account: set HF_TOKEN or run"
        " `hf auth login`."
    ),
    "hub-token-refused": (
        "{endpoint} refuses the access token of this machine, so {repository} cannot be"
        " downloaded. Make a new token at {endpoint}/settings/tokens and set HF_TOKEN or run"
        " `hf auth login`; a public model also works with no token at all."
    ),
    "hub-revision-not-found": (
        "{repository} has no branch, tag or commit '{revision}'. Choose one that {page} lists, or"
        " leave the revision out."
    ),
    "hub-file-missing": (
        "A file that {repository} lists cannot be found on {endpoint} any more. The repository"
        " may have just changed: try again."
    ),
    "hub-no-config": (
        "{repository} has no config.json in its top folder, so its architecture is unknown."
        " Choose a repository with a whole model in Hugging Face format (adapters alone and"
        " pipelines of several models cannot be opened)."
    ),
    "hub-no-tokenizer": (
        "{repository} has no tokenizer in its top folder: none of tokenizer.json, tokenizer.model,"
        " vocab.json, tekken.json was found. Choose another repository, such as that of the model"
        " that it was made from."
    ),
    "hub-no-safetensors": (
        "{repository} has its weights only in formats that can run code when they are opened"
        " ({files}). Look on {page} for a revision or a copy with .safetensors files, or convert"
        " it with transformers: save_pretrained(folder), and open that folder."
    ),
    "hub-only-gguf": (
        "{repository} holds GGUF files only ({files}). Download one of them from {page} and open"
        " that single .gguf file from disk."
    ),
    "hub-no-weights": (
        "{repository} holds no weights of a language model in its top folder: no .safetensors"
        " file was found. Choose another repository or revision."
    ),
    "hub-weights-unclear": (
        "{repository} holds files of weights ({files}) and no model.safetensors.index.json that"
        " says which belong together. Look on {page} for a revision with this index or with one"
        " model.safetensors, or choose another repository."
    ),
    "hub-shard-missing": (
        "The weight index of {repository} names files that the repository does not hold:"
        " {files}. Its upload is incomplete: choose another revision or tell its owner."
    ),
    "hub-damaged": (
        "{path} is damaged: it is not the index of weight files that its name announces. Delete"
        " this file and download again."
    ),
    "hub-wrong-contents": (
        "What arrived of {file} is not what the Hub announced, so it was thrown away. Download"
        " again; if it happens twice, check the proxy and the disk."
    ),
    "hub-interrupted": (
        "The download of {file} from {repository} was cut several times ({reason}). What arrived"
        " is kept: start it again and it continues from there."
    ),
    "hub-data-id": (
        "'{text}' is not the id of a data set on the Hugging Face Hub. Write it as owner/name, for"
        " example tatsu-lab/alpaca, with the name of a file behind it where you want that one."
    ),
    "hub-data-not-found": (
        "There is no data set {repository} on {endpoint}. Check the spelling, upper and lower case"
        " included; search for it at {endpoint}/datasets."
    ),
    "hub-data-no-file": (
        "{repository} has no file {asked} with rows that can be read here (Parquet, JSON, JSON"
        " lines, CSV, TSV). Those there are: {files}. Choose one of them, or another data set."
    ),
    "hub-data-too-large": (
        "{file} of {repository} has {found_mb} MB, and {limit_mb} MB are read at most. Name a"
        " smaller file of it (owner/name/file), or cut some rows out and upload them."
    ),
    "download-cancelled": (
        "The download of {repository} was cancelled. What arrived is kept: start it again and it"
        " continues from there."
    ),
    "disk-full": (
        "{repository} needs {needed_gb} GB more on the disk of {folder}, and {free_gb} GB are"
        " free. Free some space, or move the cache to another disk with HF_HOME."
    ),
    "disk-filled": (
        "The disk of {folder} became full while {repository} was downloaded. Free some space and"
        " start it again: it continues where it stopped. HF_HOME moves the cache to another disk."
    ),
    "hub-cache-unwritable": (
        "The download of {repository} cannot be written to {folder} ({reason}). Check the rights"
        " of this folder, or choose another one with HF_HOME."
    ),
}


def hub_error(code: str, **facts: object) -> SourceError:
    """Make the `SourceError` of one code.

    Args:
        code: A key of `MESSAGES`.
        **facts: Values for the placeholders of its sentence.

    Returns:
        The error, with its English message filled in; the caller raises it.
    """
    return SourceError(MESSAGES[code].format(**facts), code=code, **facts)


def disk_full_error(
    repository: str, folder: Path, needed_bytes: int, free_bytes: int
) -> SourceError:
    """Make the error for a disk that cannot hold the rest of a download.

    Args:
        repository: Id of the repository.
        folder: The cache folder.
        needed_bytes: Bytes still to be written.
        free_bytes: Bytes free on the disk of `folder`.
    """
    return hub_error(
        "disk-full",
        repository=repository,
        folder=str(folder),
        needed_gb=f"{needed_bytes / 1e9:.2f}",
        free_gb=f"{free_bytes / 1e9:.2f}",
    )


@contextmanager
def translated_errors(
    repository: str, revision: str, endpoint: str, folder: Path
) -> Iterator[None]:
    """Turn errors of the network and the disk inside the block into a `SourceError`.

    Args:
        repository: Id of the repository, for the message.
        revision: Branch, tag or commit that was asked for.
        endpoint: Address of the Hub, without a slash at its end.
        folder: The cache folder that is written to.

    Raises:
        SourceError: In place of offline mode, a refusing or failing server, an unreachable network
            and a folder that cannot be written.
    """
    try:
        yield
    except OfflineModeIsEnabled as error:  # before OSError: it is one
        raise hub_error("hub-offline", repository=repository) from error
    except HfHubHTTPError as error:  # before RequestError and OSError: it is both
        raise _answer_error(error, repository, revision, endpoint) from error
    except (httpx2.RequestError, httpx2.InvalidURL) as error:
        raise hub_error(
            "hub-unreachable", repository=repository, endpoint=endpoint, reason=reason_of(error)
        ) from error
    except OSError as error:
        raise _write_error(error, repository, folder) from error


def reason_of(error: Exception) -> str:
    """Name the cause of an error in one short line.

    Args:
        error: What was raised.

    Returns:
        Its own text, or its type's name where it has none (timeouts often have none).
    """
    lines = str(error).splitlines()
    return lines[0] if lines else type(error).__name__


def _answer_error(
    error: HfHubHTTPError, repository: str, revision: str, endpoint: str
) -> SourceError:
    """Choose the code for an answer of the Hub that is not a success."""
    facts = {
        "repository": repository,
        "revision": revision,
        "endpoint": endpoint,
        "page": f"{endpoint}/{repository}",
        "status": error.response.status_code,
    }
    return hub_error(_code_of_answer(error), **facts)


def _code_of_answer(error: HfHubHTTPError) -> str:
    status = error.response.status_code
    if isinstance(error, GatedRepoError):
        return "hub-gated"
    if isinstance(error, RevisionNotFoundError):
        return "hub-revision-not-found"
    if isinstance(error, RemoteEntryNotFoundError):
        return "hub-file-missing"
    if status in (401, 403):
        # The Hub answers 401 both for what is hidden and for what does not exist, so that nobody
        # can find out the names of private repositories; only a bad token is told apart.
        said = error.response.headers.get("X-Error-Message")
        return "hub-token-refused" if said == _BAD_TOKEN else "hub-no-access"
    if status == 404:
        return "hub-not-found"
    return "hub-server-error"


def _write_error(error: OSError, repository: str, folder: Path) -> SourceError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return hub_error("disk-filled", repository=repository, folder=str(folder))
    return hub_error(
        "hub-cache-unwritable", repository=repository, folder=str(folder), reason=reason_of(error)
    )
