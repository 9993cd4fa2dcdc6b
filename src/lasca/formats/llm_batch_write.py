"""Batch requests for language models: a line per text, with the guideline, for the APIs of OpenAI and Anthropic.

    {"custom_id": "lasca-4be8…-1", "method": "POST", "url": "/v1/chat/completions", "body": {"model": "gpt-4o-mini", "messages": [{"role": "system", "content": "…guideline…"}, {"role": "user", "content": "Ada Lovelace visited New York ."}]}}

The file holds texts and nothing that anybody labelled. LASCA sends nothing anywhere: upload the file, and read the
results back with the format "llm-batch" (`llm_batch`), which finds the texts again by the `custom_id`.
"""  # noqa: E501

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from lasca import align
from lasca.corpus import CrowdCorpus
from lasca.errors import LascaWarning, ParameterError
from lasca.estimator import check_choice, check_int, check_number
from lasca.files import whole_file
from lasca.formats.outcome import Outcome
from lasca.schemes import detect_corpus
from lasca.schemes.tables import parts_of

__all__ = ["APIS", "custom_id", "span_types", "text_of", "write"]

APIS = ("openai", "anthropic")
MODELS = {"openai": "gpt-4o-mini", "anthropic": "claude-3-5-haiku-latest"}
LIMIT = {"openai": 50_000, "anthropic": 100_000}  # requests that one batch may hold, as their documents say
RIVALS = 5  # how many rivals of each piece are asked for with logprobs=true

SPANS = """Mark every span of these types: {types}.
Answer with JSON only: {{"spans": [{{"text": "…", "label": "…"}}, …]}}
- "text" is copied from the text, character by character; "label" is one of the types.
- List the spans in the order of the text; what stands in it twice is listed twice.
- If there is nothing to mark, answer {{"spans": []}}."""
TOKENS = """Give every token one of these labels: {types}.
The tokens are given one per line.
Answer with JSON only: {{"labels": ["…", …]}}, one label per token, in their order."""


def write(
    corpus: CrowdCorpus,
    made: Outcome,
    path: str | Path,
    *,
    guideline: str | Path | None = None,
    api: str | None = None,
    model: str | None = None,
    samples: int = 1,
    temperature: float | None = None,
    max_tokens: int = 4096,
    logprobs: bool = False,
    types: Iterable[str] | str = (),
) -> None:
    """Write one request per sequence and sample.

    `guideline` is the file that tells people how to label; `api` "openai" or "anthropic" (by default what the name of
    the `model` suggests); `samples` asks that often, to learn how sure the model is; `logprobs` asks for
    log-probabilities (OpenAI). `types` names the types to mark where the corpus has no labels yet.
    """
    if guideline is None:
        raise ParameterError("guideline", guideline, "the file that says how to label (--guideline guide.md)")
    chosen = api or ("anthropic" if (model or "").lower().startswith("claude") else "openai")
    check_choice("api", chosen, APIS)
    check_int("samples", samples, low=1, high=100)
    check_int("max_tokens", max_tokens, low=16)
    if temperature is not None:
        check_number("temperature", temperature, low=0, high=2)
    if logprobs and chosen != "openai":
        raise ParameterError("logprobs", logprobs, f"left out: the API of {chosen} gives none")
    prompt, as_spans = _prompt(corpus, _guideline(guideline), (types,) if isinstance(types, str) else tuple(types))
    body: dict[str, Any] = {"model": model or MODELS[chosen]}
    if temperature is not None:
        body["temperature"] = temperature
    request = _openai if chosen == "openai" else _anthropic
    settings: dict[str, Any] = {"samples": samples, "max_tokens": max_tokens, "logprobs": logprobs}
    n = 0
    with whole_file(path) as scratch, scratch.open("w", encoding="utf-8", newline="\n") as stream:
        for s in range(corpus.n_sequences):
            text = text_of(corpus, s)[0] if as_spans else "\n".join(corpus.sequence(s))
            for row in request(custom_id(corpus, s, prompt), prompt, text, body, **settings):
                stream.write(json.dumps(row, ensure_ascii=False) + "\n")
                n += 1
    if n > LIMIT[chosen]:
        warnings.warn(
            LascaWarning(f"{path}: {n:,} requests, but a batch of {chosen} holds {LIMIT[chosen]:,}: cut it by lines"),
            stacklevel=2,
        )


def _openai(
    id: str, prompt: str, text: str, body: dict[str, Any], *, samples: int, max_tokens: int, logprobs: bool
) -> Iterator[dict[str, Any]]:
    """Yield one request: OpenAI gives several samples as choices of one answer."""
    messages = [{"role": "system", "content": prompt}, {"role": "user", "content": text}]
    more: dict[str, Any] = {"max_completion_tokens": max_tokens, "response_format": {"type": "json_object"}}
    if samples > 1:
        more["n"] = samples
    if logprobs:
        more |= {"logprobs": True, "top_logprobs": RIVALS}
    yield {
        "custom_id": f"{id}-1",
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": {**body, "messages": messages, **more},
    }


def _anthropic(
    id: str, prompt: str, text: str, body: dict[str, Any], *, samples: int, max_tokens: int, logprobs: bool
) -> Iterator[dict[str, Any]]:
    """Yield a request per sample."""
    params = {**body, "max_tokens": max_tokens, "system": prompt, "messages": [{"role": "user", "content": text}]}
    for i in range(samples):
        yield {"custom_id": f"{id}-{i + 1}", "params": params}


def custom_id(corpus: CrowdCorpus, sequence: int, prompt: str) -> str:
    """Return what a result is recognised by: a checksum of the sequence (id and tokens), and one of the prompt."""
    words = "\0".join((corpus.sequence_ids[sequence], *corpus.sequence(sequence)))
    return f"lasca-{_digest(words)[:24]}-{_digest(prompt)[:6]}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()


def _guideline(path: str | Path) -> str:
    try:
        text = Path(path).read_text(encoding="utf-8-sig").strip()
    except (OSError, ValueError) as error:
        raise ParameterError("guideline", str(path), "a text file that can be read (UTF-8)") from error
    if not text:
        raise ParameterError("guideline", str(path), "a file that says how to label: this one is empty")
    return text


def _prompt(corpus: CrowdCorpus, guideline: str, types: tuple[str, ...]) -> tuple[str, bool]:
    """Return what the model is told before the text, and whether it is asked for spans (or a label per token)."""
    names = [t for given in types for t in given.replace(",", " ").split()]
    found = names or span_types(corpus)
    if not found and detect_corpus(corpus) is not None:
        raise ParameterError("types", types, "the type to mark (types=NAME): the tags of the corpus name none")
    if found:
        return f"{guideline}\n\n{SPANS.format(types=', '.join(found))}", True
    if not corpus.labels:
        raise ParameterError("types", types, "the types to mark (types=PER,LOC), because the corpus has no labels")
    return f"{guideline}\n\n{TOKENS.format(types=', '.join(corpus.labels))}", False


def span_types(corpus: CrowdCorpus) -> list[str]:
    """Return the types of a corpus of spans; nothing for one label per token."""
    if detect_corpus(corpus) is None:
        return []
    return sorted({parts[1] for label in corpus.labels if (parts := parts_of(label)) is not None and parts[1]})


def text_of(corpus: CrowdCorpus, sequence: int) -> tuple[str, list[tuple[int, int]]]:
    """Return the text of a sequence and where its tokens stand: the text it came with, or its tokens with blanks."""
    start, stop = int(corpus.offsets[sequence]), int(corpus.offsets[sequence + 1])
    if corpus.token_chars is not None and "text" in corpus.metadata:
        chars = [(int(a), int(b)) for a, b in corpus.token_chars[start:stop]]
        return corpus.metadata["text"][sequence], chars
    return align.spelled(corpus.sequence(sequence))
