"""The words by which people and assistants mark decisions, next steps and questions; English first, some others.

Patterns are cautious: a sentence that is missed costs less than one that was never meant.
"""

from __future__ import annotations

import re
from enum import Enum, auto

__all__ = [
    "ASKING",
    "COURTESY",
    "DECIDED",
    "LABELS",
    "NOTHING",
    "OFFER",
    "RHETORICAL",
    "SMALL_TALK",
    "STEP",
    "TO_PERSON",
    "UNDECIDED",
    "Section",
]


class Section(Enum):
    """What the entries below a heading are."""

    STEPS = auto()
    QUESTIONS = auto()
    DECISIONS = auto()


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.VERBOSE)


_QUESTIONS = _words(
    r"""(?<!\w)(?:
      (?:open|unresolved|unanswered|outstanding|remaining|pending)\ (?:questions?|decisions?) | unresolved
    | questions?(?:\ (?:for|to)\ (?:you|the\ (?:user|person|team)))? | (?:still\ )?unclear(?:\ points?|\ to\ me)?
    | decisions?\ (?:needed|required|pending|to\ (?:make|take)) | to\ be\ decided | to\ clarify
    | (?:needs?|waiting\ (?:for|on))\ (?:your|a)\ (?:input|decision|answer)
    | offene\ fragen? | (?:rück)?fragen? | ungeklärt | noch\ zu\ klären
    | questions?\ (?:ouvertes?|en\ suspens) | preguntas?(?:\ abiertas?)? | domande\ aperte | perguntas\ em\ aberto
    | 未解決の(?:質問|問題) | 未决问题 | 待确认(?:问题)? | 待解决(?:的)?问题 | 열린\ 질문 | открытые\ вопросы | вопросы?
    )(?!\w)"""
)

_DECISIONS = _words(
    r"""(?<!\w)(?:
      (?:(?:key|main|design|technical|architecture|architectural|important|final)\ )*decisions?
        (?:\ (?:made|taken|so\ far|and\ rationale))?
    | chosen\ (?:approach|option|design|solution) | approach\ (?:chosen|taken) | decided | agreed | agreements?
    | entscheidung(?:en)? | entschieden | beschlossen | beschlüsse?
    | décisions?(?:\ prises?)? | decisi(?:ón|ones)(?:\ tomadas?)? | decision[ei] | decisões
    | 決定(?:事項)? | 决定(?:事项)? | 결정(?:\ 사항)? | решени[ея]
    )(?!\w)"""
)

_STEPS = _words(
    r"""(?<!\w)(?:
      (?:(?:optional|recommended|suggested|immediate|possible|remaining)\ )?next\ (?:steps?|actions?|up|tasks?)
    | (?:next|open|missing|tomorrow)(?=\s*[:：.?!]*\s*\Z|\s*[:：]) | up\ next
    | not\ (?:yet\ )?done(?:\ yet)? | still\ missing
    | what(?:'s|’s|\ is|\ comes)\ next | what(?:'s|’s|\ is)\ (?:still\ )?(?:left|missing|open)(?:\ to\ do)?
    | what\ remains(?:\ to\ be\ done)? | remaining(?:\ (?:work|tasks?|steps?|items?|todos?|issues?))?
    | (?:still\ )?to[-\ ]?dos?(?:\ list)? | (?:still\ )?left\ to\ do | still\ (?:to\ do|open|missing|left)
    | follow[-\ ]?ups? | (?:(?:one|an)\ )?(?:pending|outstanding|open)\ (?:tasks?|work|items?|steps?|points?|issues?)
    | pending | action\ items?
    | nächste[rn]?\ schritte? | als\ nächstes | noch\ (?:zu\ tun|offen) | offene\ (?:punkte|aufgaben) | offen
    | prochaines?\ étapes? | étapes?\ suivantes? | (?:il\ )?reste\ à\ faire | à\ faire
    | próximos?\ pas[os]os? | próximos?\ pasos? | siguientes?\ pasos? | pendientes? | por\ hacer
    | prossimi\ passi | volgende\ stappen
    | 次のステップ | 残りの(?:作業|タスク) | 今後の作業 | 下一步(?:计划|工作)? | 后续(?:步骤|工作) | 待办(?:事项)?
    | 剩余(?:工作|任务) | 다음\ 단계 | следующие\ шаги | осталось(?:\ сделать)?
    )(?!\w)"""
)

LABELS = ((Section.QUESTIONS, _QUESTIONS), (Section.DECISIONS, _DECISIONS), (Section.STEPS, _STEPS))
"""Headings, tried in this order: "decisions needed" is a question, "remaining questions" no next step."""

LEAD_INS = (
    (
        Section.QUESTIONS,
        _words(r"\b(?:open\ questions?|questions?\ for|need\ your\ (?:input|decision)|offene\ fragen)\b"),
    ),
    (Section.DECISIONS, _words(r"\b(?:decided|decisions?(?!\ (?:table|tree)s?)|entschieden)\b")),
    (
        Section.STEPS,
        _words(
            r"""\b(?:next\ steps?|left\ to\ do|to-?dos?|what\ remains|what['’]s\ left|still\ (?:open|missing|to\ do)
            |remaining\ (?:work|tasks?|steps?|items?)|nächsten?\ schritte)\b"""
        ),
    ),
)
"""The same within a line that ends in a colon and introduces a list, like "Here are the next steps:"."""

NOTHING = _words(
    r"\W*(?:none|nothing|n/?a|no|nil|keine[rs]?|nichts|aucune?|rien|ninguna?|nada|なし|无|没有)"
    r"(?:\ (?:left|pending|open|so\ far|yet|at\ (?:this|the)\ (?:time|moment)|for\ now|known))*\W*\Z"
)
"""An entry that says that there is none."""

DECIDED = _words(
    r"""
      \b(?:we|i|you|(?:the\ )?(?:user|team|person))(?:['’]ve|\ have|['’]d|\ had)?
        (?:\ (?:now|also|already|finally|then|just|both|therefore|deliberately|explicitly))?
        \ (?:decided|agreed|chose|chosen|settled\ (?:on|for)|opted|picked(?!\ up)|went\ with|gone\ with|landed\ on
        |concluded\ that|ruled\ out|rejected)\b
    | \b(?:i|we)\ (?:kept|left|dropped|switched|moved|replaced|used|chose|made|implemented|wrote|resolved)\b[^?]{3,200}
        \b(?:because|since|so\ that|instead\ of|rather\ than|in\ favou?r\ of)\b
    | \b(?:we|i)(?:['’]re|\ are|['’]m|\ am)\ (?:now\ )?
        (?:dropping|keeping|switching\ to|sticking\ (?:with|to)|choosing)\b
    | \A\W*(?:i\ |we\ )?(?:switched|moved|migrated)\ from\ .{2,120}\ to\b
    | \bthe\ plan\ is\ (?:to|that)\b | \A\W*as\ (?:agreed|decided)\b | \b(?:was|were)\ agreed\b
    | \A\W*(?:from\ now\ on|going\ forward|per\ your\ request|as\ you\ (?:asked|wanted|said|requested)
        |you\ asked\ for)\b
    | \A\W*instead\ of\ .{2,120}\b(?:now|we|i)\b
    | \A\W*(?:please\ )?(?:always|never)\ (?:use|write|commit|push|run|call|return|add|edit|touch|delete)\b
    | \bfor\ the\ .{2,80}\ (?:i|we)(?:['’]ll|\ will)\ use\b
    | \bit\ (?:was|is|has\ been)\ (?:decided|agreed|settled)\b | \bmade\ the\ call\ to\b
    | \b(?:the|our|my|final)\ (?:decision|choice)\ (?:is|was)\b
    | \A\W*(?:(?:ok(?:ay)?|yes|no|so|right|alright|good|fine|then|please|and)[,.]?\ )*
        let(?:['’]?s|\ us)\ (?:use|go\ with|keep|stick\ (?:with|to)|stay\ with|not\ |switch\ to|drop|avoid|prefer|adopt
        |store|skip|call\ it|name\ it)\b
    | (?:\A\W*(?:(?:ok(?:ay)?|yes|no|so|please|always)[,.]?\ )*|\b(?:we|i|let['’]?s|we['’]ll|i['’]ll|will|please|must
        |you\ should|,|;)\ )(?:use|pick|choose|prefer|keep|take|store|go\ with|switch\ to|write|return|call|name)\b
        [^?]{1,200}?\b(?:instead\ of|rather\ than|instead\b|,?\ not\ (?!only|just|yet|sure|all)\w+)
    | \A\W*(?:please\ )?(?:don['’]?t|do\ not|never)\ use\b.{1,160}\buse\b
    | \b(?:we|i)(?:['’]ll|\ will|['’]re|\ are|['’]m|\ am)?(?:\ now)?\ go(?:ing)?\ with\b | \A\W*going\ with\b
    | \bwe(?:['’]ll|\ will)\ (?:use(?!\ the\ following)|store|keep(?!\ (?:an|you|going|in))|stay\ with
        |stick\ (?:with|to))\b
    | \bwe(?:\ will\ not|\ won['’]?t|['’]re\ not\ going\ to)\ (?:use|support|add|touch|change|migrate|drop|ship)\b
    | \b(?:wir|ich)\ (?:haben|habe|hatten)\b.*\b(?:entschieden|beschlossen|geeinigt)\b
    | \b(?:wir\ (?:nehmen|verwenden|benutzen|nutzen)|nimm|verwende|benutze?)\b.*\b(?:statt|anstatt|anstelle)\b
    | \bwir\ bleiben\ bei\b
    | \b(?:nous\ avons|j['’]ai|on\ a)\ (?:décidé|choisi|opté)\b | \butilis\w+\b.*\b(?:au\ lieu\ de|plutôt\ que)\b
    | \b(?:(?:hemos|he)\ decidido|decidimos|decidí|elegimos)\b | \bus[ae]\w*\b.*\ben\ (?:vez|lugar)\ de\b
    | ことにし(?:た|ました) | に決め(?:た|ました) | に決定 | 决定(?:使用|采用|用|不|保留|改)
    """
)
"""A sentence that states a decision."""

UNDECIDED = _words(
    r"""\b(?:have\ not|haven['’]t|hasn['’]t|had\ not|hadn['’]t|did\ not|didn['’]t|not\ yet|never|yet\ to\ be|to\ be
    |could\ have|would\ have|might\ have|should\ have|once|until|unless|before|if|whether)
    \ (?:(?:we|i|you|it|it['’]s|been|have|had|is|was|the\ team)\ ){0,2}
      (?:decided?|agreed?|chosen?|chosen|picked|settled)
    | \b(?:noch\ nicht|nicht)\ entschieden\b | \bwhy\ (?:we|i|you)\ (?:decided|chose)\b"""
)
"""A sentence about a decision that was not made."""

STEP = _words(
    r"""
      \A\W*(?:the\ |my\ |our\ )?next\ (?:step|thing|task)(?:\ to\ do)?(?:\ is|\ would\ be|\ will\ be|\ for\ )
    | \A\W*(?:you|we|i)(?:['’]ll|\ will)?(?:\ still|\ also)?\ (?:need|have)\ to\b
    | \A\W*(?:i|we)\ (?:have\ not|haven['’]t|did\ not|didn['’]t)\ .{2,120}\byet\b | \A\W*you\ should\b
    | \A\W*(?:the\ )?remaining\ (?:work|steps?|tasks?|items?)\ (?:is|are)\b | \A\W*an?\ follow-?up\ would\ be\b
    | \bneeds?\ (?:an?\ )?(?:update|fix|review|test|rewrite|documentation|to\ be\ \w+(?:ed|en|ne))\b
    | \A\W*to\ finish\ (?:this|it|the)\b | \A\W*then\ (?:we|you|i)\ (?:can|should|need\ to)\b
    | \A\W*what(?:['’]s|\ is)\ (?:still\ )?(?:missing|left|open)\ is\b
    | \A\W*next,?\ (?:i|we)(?:['’]ll|\ will|['’]d|\ would|\ need\ to|\ should|\ have\ to|\ must|\ plan\ to|\ can)\b
    | \A\W*(?:TODO|FIXME)\s*[:—-]\s*\S
    | \b(?:is|are|was|remains?)\ still\ to\ (?:be\ )?(?:do|done|fix(?:ed)?|add(?:ed)?|test(?:ed)?|write|written
        |implement(?:ed)?|check(?:ed)?|verif(?:y|ied)|update[d]?)\b
    | \bremains?\ to\ be\ \w+(?:ed|en|ne|wn)\b | \bstill\ needs?\ (?:to|a|an|the|its)\b
    | \bstill\ (?:left\ )?to\ do\b
    | \A\W*als\ nächstes\b | \b(?:muss|müssen|fehlt|fehlen)\ noch\b
    | \A\W*(?:prochaine\ étape|la\ prochaine\ étape|el\ siguiente\ paso|el\ próximo\ paso)\b
    """
)
"""A sentence that states what is to be done next."""

TO_PERSON = _words(
    r"""\b(?:you|your|yours|should|shall|do\ we|are\ we|may|can\ (?:i|we)|could\ (?:i|we)|which|want|prefer
    |ok(?:ay)?\ to|is\ it\ (?:ok|fine|acceptable)|must\ (?:i|we|it)|soll(?:en|te|ten)?|möchte(?:st|n)|willst|dürfen|darf
    |faut-il|doit-on|voulez|veux|debemos|quieres|deber[íi]amos)\b | か[?？] | 吗[?？] | 是否"""
)
"""A question sentence that is meant for the person and not rhetorical."""

ASKING = _words(
    r"""\A\W*(?:(?:and|or|but|so|also|now),?\ )?(?:can|could|should|shall|may|must|do|does|did|is|are|was|will|would
    |which|who|whom|whose|where|when|how\ (?:should|many|much|long|often)|what\ (?:should|happens|if|about|kind))\b
    | \bor\ (?:should|shall|do|is|are)\b"""
)
"""A question in the form of one that wants an answer; `why` and `what is` are often followed by it."""

RHETORICAL = _words(r"\W*(?:because|since|yes|no|it\ turns\ out|the\ (?:answer|reason|cause)|weil|parce\ que|porque)\b")
"""What follows a question that its writer answers himself."""

COURTESY = _words(
    r"""\banything\ else\b | \bhow\ (?:can|may)\ i\ help\b | \bmakes?\ sense\W*\Z
    | \bwhat\ (?:would\ you\ like|can\ i|should\ (?:i|we)|shall\ (?:i|we))(?:\ me)?(?:\ to)?\ (?:do|work\ on|help)
      (?:\ (?:with|for\ you|next|today|now))*\W*\Z"""
)
"""A question that asks nothing about the work."""

OFFER = _words(
    r"""\A\W*(?:(?:do\ you\ )?want\ me\ to|would\ you\ like(?:\ me)?\ to|shall\ (?:i|we)|ready\ (?:to|for)
    |(?:should|can|may|could)\ (?:i|we)\ (?:go\ (?:on|ahead)|continue|proceed|start|commit|push|merge|apply|run)
    |soll\ ich|sollen\ wir)\b"""
)
"""A question that offers to go on."""

SMALL_TALK = re.compile(
    r"(?:hi|hey|hello|hallo|moin|good (?:morning|evening)|guten (?:tag|morgen)|bonjour|hola|test|testing|ok(?:ay)?"
    r"|yes|no|ja|nein|go (?:on|ahead)|continue|proceed|weiter|thanks?(?: you)?|danke|merci|gracias|great|perfect|cool)"
    r"(?:,? (?:there|again|all|please|thanks|continue|go on|bitte))?\W*\Z",
    re.IGNORECASE,
)
"""A prompt that says nothing about the work."""
