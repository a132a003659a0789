"""The replies that are asked for: to the question again, or to perturbed prompts."""

from functools import partial

from trustassay.event_loop import all_of
from trustassay.metric import Context, unless_empty
from trustassay.metrics.harmonicity.asking import Asking
from trustassay.metrics.uncertainty.options import UncertaintyOptions


class OtherReplies:
    """Asks for one reply after another; those of few calls are the first of those of many.

    Replies to perturbed prompts are those of a ``harmonicity`` with its own defaults, in its order.
    """

    def __init__(self, options: UncertaintyOptions, context: Context) -> None:
        self._options = options
        self._models, self._question = context.models, context.sample.question
        self._asked = 0  # the number 0 is the answer itself
        self._perturbed: Asking | None = None
        if options.replies == "perturbed":
            self._perturbed = Asking(options.perturbing, context.sample, context.models)

    async def more(self, n: int) -> list[str]:
        """Return the next n replies, an empty text for an empty one.

        Raises:
            AssessmentError: perturbed prompts were refused, or their replies empty, too often.
        """
        if self._perturbed:
            return [one.answer for one in await self._perturbed.more(n)]
        text, name = self._options.asks(self._question)
        temperature, most = self._options.temperature, self._options.max_tokens
        chat = partial(self._models.chat, text, temperature=temperature, max_tokens=most)
        first, self._asked = self._asked + 1, self._asked + n
        asked = (chat(prompt=name, repeat=number) for number in range(first, first + n))
        replies = await all_of(unless_empty(one) for one in asked)
        return [reply.text if reply else "" for reply in replies]
