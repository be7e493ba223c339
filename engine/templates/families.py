"""Chat templates of our own, one for each family, for files that come without one.

Written from the formats that the makers describe (model cards and documentation); each shows only how turns
are marked.  A system text that a format has no place for is refused, and then folded into the first question.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Family:
    """A way to mark turns.

    marks: texts that have to be control tokens of the vocabulary.
    end: the control token that ends a reply; where several families fit, the file's EOS decides by it.
    words: groups of words; a format whose marks are ordinary text fits where the model's name has all of one.
    tokenizer: the `tokenizer.ggml.model` it goes with, "" for any.
    architectures: the `general.architecture`s it goes with, none for any.
    """

    name: str
    source: str
    marks: tuple[str, ...] = ()
    end: str = ""
    words: tuple[tuple[str, ...], ...] = ()
    tokenizer: str = ""
    architectures: tuple[str, ...] = ()

    def fits(self, control_texts: Set[str], model_name: str, tokenizer: str, architecture: str) -> bool:
        """model_name: in small letters."""
        return (
            control_texts >= set(self.marks)
            and self.tokenizer in ("", tokenizer)
            and (not self.architectures or architecture in self.architectures)
            and (not self.words or any(all(word in model_name for word in group) for group in self.words))
        )


_NO_SYSTEM = "{% if m.role == 'system' %}{{ raise_exception('no place for a system text') }}{% endif %}"


def _turns(turn: str, ask: str, *, before: str = "", bos: bool = False) -> str:
    """A template: turn for every message m, ask where a reply is wanted."""
    return (
        ("{{ bos_token }}" if bos else "")
        + before
        + "{% for m in messages %}"
        + turn
        + "{% endfor %}{% if add_generation_prompt %}{{ '"
        + ask
        + "' }}{% endif %}"
    )


_CHATML = _turns(
    r"{{ '<|im_start|>' + m.role + '\n' + m.content + '<|im_end|>\n' }}", r"<|im_start|>assistant\n"
)

_PHI_4 = _turns(
    "{{ '<|im_start|>' + m.role + '<|im_sep|>' + m.content + '<|im_end|>' }}",
    "<|im_start|>assistant<|im_sep|>",
)

_PHI_3 = _turns(r"{{ '<|' + m.role + '|>\n' + m.content + '<|end|>\n' }}", r"<|assistant|>\n")

_PHI_4_MINI = _turns("{{ '<|' + m.role + '|>' + m.content + '<|end|>' }}", "<|assistant|>")

_LLAMA_3 = _turns(
    r"{{ '<|start_header_id|>' + m.role + '<|end_header_id|>\n\n' + m.content|trim + '<|eot_id|>' }}",
    r"<|start_header_id|>assistant<|end_header_id|>\n\n",
    bos=True,
)

_LLAMA_4 = _turns(
    r"{{ '<|header_start|>' + m.role + '<|header_end|>\n\n' + m.content|trim + '<|eot|>' }}",
    r"<|header_start|>assistant<|header_end|>\n\n",
    bos=True,
)

_GEMMA = _turns(
    _NO_SYSTEM
    + r"{{ '<start_of_turn>' + ('model' if m.role == 'assistant' else m.role) + '\n' }}"
    + r"{{ m.content|trim + '<end_of_turn>\n' }}",
    r"<start_of_turn>model\n",
    bos=True,
)

_COMMAND_R = _turns(
    "{% set who = {'system': '<|SYSTEM_TOKEN|>', 'assistant': '<|CHATBOT_TOKEN|>'} %}"
    "{{ '<|START_OF_TURN_TOKEN|>' + who.get(m.role, '<|USER_TOKEN|>') }}"
    "{{ m.content + '<|END_OF_TURN_TOKEN|>' }}",
    "<|START_OF_TURN_TOKEN|><|CHATBOT_TOKEN|>",
    bos=True,
)

_GRANITE = _turns(
    r"{{ '<|start_of_role|>' + m.role + '<|end_of_role|>' + m.content + '<|end_of_text|>\n' }}",
    "<|start_of_role|>assistant<|end_of_role|>",
)

_DEEPSEEK = _turns(
    "{% if m.role == 'system' %}{{ m.content }}"
    "{% elif m.role == 'assistant' %}"
    "{{ '<\uff5cAssistant\uff5c>' + m.content + '<\uff5cend\u2581of\u2581sentence\uff5c>' }}"
    "{% else %}{{ '<\uff5cUser\uff5c>' + m.content }}{% endif %}",
    "<\uff5cAssistant\uff5c>",
    bos=True,
)

# https://cookbook.openai.com/articles/openai-harmony: a person's system text is there the developer's.
_HARMONY = _turns(
    "{% if m.role == 'system' %}"
    r"{{ '<|start|>developer<|message|># Instructions\n\n' + m.content + '<|end|>' }}"
    "{% elif m.role == 'assistant' %}"
    "{{ '<|start|>assistant<|channel|>final<|message|>' + m.content + '<|end|>' }}"
    "{% else %}{{ '<|start|>' + m.role + '<|message|>' + m.content + '<|end|>' }}{% endif %}",
    "<|start|>assistant",
    before=r"{{ '<|start|>system<|message|>Reasoning: medium\n\n# Valid channels: analysis, commentary, "
    r"final. Channel must be included for every message.<|end|>' }}",
)

# It answers at once where its thoughts are empty.
_EXAONE_4 = _turns(
    r"{{ '[|' + m.role + '|]\n' + m.content + '[|endofturn|]\n' }}",
    r"[|assistant|]\n<think>\n\n</think>\n\n",
)

_EXAONE = _turns(
    r"{{ '[|' + m.role + '|]' + m.content + ('\n' if m.role == 'user' else '[|endofturn|]\n') }}",
    "[|assistant|]",
)

_MISTRAL_V7 = _turns(
    "{% if m.role == 'system' %}{{ '[SYSTEM_PROMPT]' + m.content + '[/SYSTEM_PROMPT]' }}"
    "{% elif m.role == 'assistant' %}{{ m.content + eos_token }}"
    "{% else %}{{ '[INST]' + m.content + '[/INST]' }}{% endif %}",
    "",
    bos=True,
)

_MISTRAL_TEKKEN = _turns(
    _NO_SYSTEM
    + "{% if m.role == 'assistant' %}{{ m.content + eos_token }}"
    + "{% else %}{{ '[INST]' + m.content + '[/INST]' }}{% endif %}",
    "",
    bos=True,
)

_MISTRAL_V3 = _turns(
    _NO_SYSTEM
    + "{% if m.role == 'assistant' %}{{ ' ' + m.content|trim + eos_token }}"
    + "{% else %}{{ '[INST] ' + m.content + '[/INST]' }}{% endif %}",
    "",
    bos=True,
)

_MISTRAL_V1 = _turns(
    _NO_SYSTEM
    + "{% if m.role == 'assistant' %}{{ ' ' + m.content|trim + eos_token }}"
    + "{% else %}{{ '[INST] ' + m.content + ' [/INST]' }}{% endif %}",
    "",
    bos=True,
)

_LLAMA_2 = (
    "{% set ns = namespace(system='') %}{% for m in messages %}"
    r"{% if m.role == 'system' %}{% set ns.system = '<<SYS>>\n' + m.content|trim + '\n<</SYS>>\n\n' %}"
    "{% elif m.role == 'assistant' %}{{ ' ' + m.content|trim + ' ' + eos_token }}"
    "{% else %}{{ bos_token + '[INST] ' + ns.system + m.content|trim + ' [/INST]' }}"
    "{% set ns.system = '' %}{% endif %}{% endfor %}"
    "{% if ns.system %}{{ raise_exception('A system text has to be followed by a question.') }}{% endif %}"
)

_ZEPHYR = _turns(r"{{ '<|' + m.role + '|>\n' + m.content + eos_token + '\n' }}", r"<|assistant|>\n")

_OLMO = _turns(
    r"{{ '<|' + m.role + '|>\n' + m.content + (eos_token if m.role == 'assistant' else '') + '\n' }}",
    r"<|assistant|>\n",
    bos=True,
)

FAMILIES = (
    Family(
        "deepseek",
        _DEEPSEEK,
        ("<\uff5cUser\uff5c>", "<\uff5cAssistant\uff5c>", "<\uff5cend\u2581of\u2581sentence\uff5c>"),
        "<\uff5cend\u2581of\u2581sentence\uff5c>",
    ),
    Family("harmony", _HARMONY, ("<|start|>", "<|channel|>", "<|message|>", "<|end|>"), "<|return|>"),
    Family("llama4", _LLAMA_4, ("<|header_start|>", "<|header_end|>", "<|eot|>"), "<|eot|>"),
    Family("llama3", _LLAMA_3, ("<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"), "<|eot_id|>"),
    Family("phi4", _PHI_4, ("<|im_start|>", "<|im_sep|>", "<|im_end|>"), "<|im_end|>"),
    Family("chatml", _CHATML, ("<|im_start|>", "<|im_end|>"), "<|im_end|>"),
    Family("gemma", _GEMMA, ("<start_of_turn>", "<end_of_turn>"), "<end_of_turn>"),
    Family("phi4-mini", _PHI_4_MINI, ("<|user|>", "<|assistant|>", "<|end|>", "<|tool_call|>"), "<|end|>"),
    Family("phi3", _PHI_3, ("<|user|>", "<|assistant|>", "<|end|>"), "<|end|>"),
    Family(
        "command-r",
        _COMMAND_R,
        ("<|START_OF_TURN_TOKEN|>", "<|END_OF_TURN_TOKEN|>", "<|USER_TOKEN|>", "<|CHATBOT_TOKEN|>"),
        "<|END_OF_TURN_TOKEN|>",
    ),
    Family(
        "granite", _GRANITE, ("<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>"), "<|end_of_text|>"
    ),
    Family(
        "exaone4",
        _EXAONE_4,
        ("[|user|]", "[|assistant|]", "[|endofturn|]"),
        "[|endofturn|]",
        architectures=("exaone4",),
    ),
    Family("exaone", _EXAONE, ("[|user|]", "[|assistant|]", "[|endofturn|]"), "[|endofturn|]"),
    Family("mistral-v7", _MISTRAL_V7, ("[SYSTEM_PROMPT]", "[INST]", "[/INST]"), tokenizer="gpt2"),
    Family("mistral-tekken", _MISTRAL_TEKKEN, ("[INST]", "[/INST]"), tokenizer="gpt2"),
    Family("mistral-v3", _MISTRAL_V3, ("[INST]", "[/INST]"), tokenizer="llama"),
    Family("mistral-v1", _MISTRAL_V1, ("</s>",), words=(("mistral", "instruct"), ("mixtral", "instruct"))),
    Family(
        "llama2",
        _LLAMA_2,
        ("<s>", "</s>"),
        words=(("llama2", "chat"), ("codellama", "instruct")),
        tokenizer="llama",
    ),
    Family("zephyr", _ZEPHYR, ("</s>",), words=(("zephyr",), ("tinyllama", "chat"))),
    Family("olmo", _OLMO, ("<|endoftext|>",), words=(("olmo", "instruct"),)),
)
"""Where several fit, the first one whose end of a turn is the file's EOS, else the first."""
