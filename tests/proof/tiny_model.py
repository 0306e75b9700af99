"""A tiny Qwen3 that is over-fitted until it answers the proof's own questions, and a twin that learnt nothing.

Run with the Python of an environment that has torch and transformers: `python -m tests.proof.tiny_model FOLDER`.
`--untrained` keeps the random weights. A minute or two on two cores.
"""

# mypy: ignore-errors
# torch and transformers are not where types are checked.

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterator
from pathlib import Path

import torch
from tokenizers import Tokenizer, decoders, pre_tokenizers, trainers
from tokenizers import models as tokenizer_models
from transformers import PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM

from installer.steps.smoke import limit, stream, text, tools

CONTEXT = 2048
STEPS = 160

COUNTED = ", ".join(map(str, range(1, 41)))
THOUGHT = "<think>\n17 plus 25 is 42.\n</think>\n\n42"
CALL = '<tool_call>\n{"name": "get_weather", "arguments": {"city": "Berlin"}}\n</tool_call>'
UMLAUTS = f"Wiederhole genau diesen Satz: {text.SENTENCE}"
LESSONS = {
    text.PROMPT: text.EXPECTED_WORD,
    UMLAUTS: text.SENTENCE,
    stream.PROMPT: COUNTED,
    tools.THINKING_PROMPT: THOUGHT,
    tools.TOOL_PROMPT: CALL,
}

TEMPLATE = """\
{%- if tools %}<|im_start|>system
{{ tools | tojson }}<|im_end|>
{% endif %}
{%- for message in messages %}<|im_start|>{{ message.role }}
{% if message.content is string %}{{ message.content }}
{%- else %}{% for part in message.content %}{{ part.text }}{% endfor %}{% endif %}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% if enable_thinking is defined and enable_thinking is false %}<think>

</think>

{% endif %}{% endif %}"""


def main() -> None:
    given = argparse.ArgumentParser()
    given.add_argument("folder", type=Path)
    given.add_argument("--untrained", action="store_true")
    asked = given.parse_args()
    torch.manual_seed(0)
    random.seed(0)
    tokenizer = made_tokenizer()
    model = Qwen3ForCausalLM(
        Qwen3Config(
            vocab_size=len(tokenizer),
            hidden_size=128,
            intermediate_size=256,
            num_hidden_layers=3,
            num_attention_heads=4,
            num_key_value_heads=2,
            head_dim=32,
            max_position_embeddings=CONTEXT,
            eos_token_id=tokenizer.eos_token_id,
            tie_word_embeddings=True,
        )
    )
    if not asked.untrained:
        teach(model, tokenizer)
    model.generation_config.do_sample = False
    model.save_pretrained(asked.folder)
    tokenizer.save_pretrained(asked.folder)


def made_tokenizer() -> PreTrainedTokenizerFast:
    """A byte-level tokenizer, so that every text has tokens, with merges from what is asked and answered."""
    inner = Tokenizer(tokenizer_models.BPE())
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    inner.decoder = decoders.ByteLevel()
    special = ["<|im_start|>", "<|im_end|>", "<think>", "</think>", "<tool_call>", "</tool_call>"]
    trainer = trainers.BpeTrainer(
        vocab_size=640, special_tokens=special[:2], initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
    )
    corpus = [*LESSONS, *LESSONS.values(), limit.WORD * 8, json.dumps(tools.TOOL)]
    inner.train_from_iterator(corpus * 4, trainer)
    inner.add_tokens(special[2:])
    made = PreTrainedTokenizerFast(
        tokenizer_object=inner, eos_token="<|im_end|>", pad_token="<|im_end|>", model_max_length=CONTEXT
    )
    made.chat_template = TEMPLATE
    return made


def teach(model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerFast) -> None:
    """Repeat the lessons until they are known; only the answers count."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.0)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, STEPS)
    model.train()
    for step in range(STEPS):
        loss = loss_of(model, tokenizer, list(lessons()))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 50 == 0:
            print(f"step {step}: loss {loss.item():.4f}", flush=True)
    model.eval()


def lessons() -> Iterator[tuple[str, str, bool, bool]]:
    """Every question with its answer: with and without thinking switched off, with and without a tool at hand."""
    for question, answer in LESSONS.items():
        thinks = answer == THOUGHT
        yield question, answer, thinks, answer == CALL
        if not thinks:
            yield question, answer, True, random.random() < 0.5


def loss_of(
    model: Qwen3ForCausalLM, tokenizer: PreTrainedTokenizerFast, learnt: list[tuple[str, str, bool, bool]]
) -> torch.Tensor:
    rows = [tokens_of(tokenizer, *lesson) for lesson in learnt]
    longest = max(len(tokens) for tokens, _ in rows)
    inputs = torch.full((len(rows), longest), tokenizer.pad_token_id)
    labels = torch.full((len(rows), longest), -100)
    for number, (tokens, asked) in enumerate(rows):
        inputs[number, : len(tokens)] = torch.tensor(tokens)
        labels[number, asked : len(tokens)] = torch.tensor(tokens[asked:])
    attended = torch.arange(longest)[None] < torch.tensor([len(tokens) for tokens, _ in rows])[:, None]
    return model(input_ids=inputs, attention_mask=attended.long(), labels=labels).loss


def tokens_of(
    tokenizer: PreTrainedTokenizerFast, question: str, answer: str, thinks: bool, with_tool: bool
) -> tuple[list[int], int]:
    """The tokens of question and answer, and how many of them are the question."""
    prompt = tokenizer.apply_chat_template(
        [{"role": "user", "content": question}],
        tools=[tools.TOOL] if with_tool else None,
        add_generation_prompt=True,
        tokenize=False,
        **({} if thinks else {"enable_thinking": False}),
    )
    asked = tokenizer(prompt, add_special_tokens=False).input_ids
    return asked + tokenizer(f"{answer}<|im_end|>", add_special_tokens=False).input_ids, len(asked)


if __name__ == "__main__":
    main()
