"""Ready examples for the server: they hold the address and the model, and read the key from the environment."""

from __future__ import annotations

import json

KEY = "SLIPWAY_API_KEY"


def curl(endpoint: str, model: str, question: str, *, needs_key: bool) -> str:
    """Return one request for a shell."""
    body = json.dumps({"model": model, "messages": [{"role": "user", "content": question}]}, ensure_ascii=False)
    key = f'  -H "Authorization: Bearer ${KEY}" \\\n' if needs_key else ""
    quoted = body.replace("'", "'\\''")
    return f"curl {endpoint}/chat/completions \\\n{key}  -H 'Content-Type: application/json' \\\n  -d '{quoted}'"


def openai_python(endpoint: str, model: str, question: str, *, needs_key: bool) -> str:
    """Return a program for the OpenAI package."""
    key = f'os.environ["{KEY}"]' if needs_key else '"none"'
    return "\n".join(
        (
            *(["import os", ""] if needs_key else []),
            "from openai import OpenAI",
            "",
            f'client = OpenAI(base_url="{endpoint}", api_key={key})',
            "answer = client.chat.completions.create(",
            f"    model={json.dumps(model)},",
            f'    messages=[{{"role": "user", "content": {json.dumps(question, ensure_ascii=False)}}}],',
            ")",
            "print(answer.choices[0].message.content)",
        )
    )
