"""Draws the code of nodes."""

from __future__ import annotations

import random
from collections.abc import Mapping

from oracle.state_keys import PRIVATE, RARE

Keys = Mapping[str, str]


def draw_body(r: random.Random, name: str, state: Keys, *, asks: float) -> str:
    """The code of a node that ends, or asks with the given probability."""
    if r.random() < asks:
        return _draw_question(r, name, state)
    kind, rare = r.random(), [key for key in state if key in RARE]
    if rare and kind < 0.5:
        return _draw_rare_use(r, name, r.choice(rare))
    if kind < 0.62:
        return _draw_overwrite(r, name)
    if kind < 0.66:
        return f"return {{'log':['{name}'],'{PRIVATE}':'{name}','unknown':1}}"
    return r.choice(
        [
            f"return {{'log':['{name}']}}",
            f"return {{'log':['{name}%d'%len(state['log'])],'n':1}}",
            "return None",
            "return {}",
            f"return {{'m':{{'{name}':state['n']}}}}",
            f"return {{'log':sorted(state['m'])+['{name}']}}",
            f"write('{name}')\nreturn {{'n':2}}",
            f"return [Command(update={{'log':['{name}1']}}),{{'log':['{name}2']}}]",
            f"return Command(update=[('log',['{name}1']),('log',['{name}2'])])",
            f"await asleep(0)\nreturn {{'log':['{name} async']}}",
        ]
    )


def draw_private_body(r: random.Random, name: str) -> str:
    """The code of a node that sees its own input alone."""
    read = f"return {{'log':['{name}:%s'%state.get('{PRIVATE}')]}}"
    return r.choice([read, f"return {{'log':[str(sorted(state))],'{PRIVATE}':'{name}'}}"])


def _draw_question(r: random.Random, name: str, state: Keys) -> str:
    # An untracked value is gone when the node runs again: the question would be another one.
    kind, rare = r.random(), [key for key in state if key in RARE and key != "u"]
    if rare and kind < 0.3:
        key = r.choice(rare)
        return f"x=interrupt('{name} %s'%state.get('{key}'))\nreturn {{'log':[x,'%s'%state.get('{key}')]}}"
    if kind < 0.5:
        again = f"{{'q':'{name}2','x':x,'n':state['n']}}"
        return f"x=interrupt('{name}1 %d'%state['n'])\ny=interrupt({again})\nreturn {{'log':['{name}',x,y]}}"
    return f"return {{'log':['{name}:'+str(interrupt('{name}? %d'%state['n']))]}}"


def _draw_rare_use(r: random.Random, name: str, key: str) -> str:
    """Code that reads or writes a key of a rare kind."""
    value = f"['{name}']" if key in "ts" else f"'{name}'"
    alone = f"return {{'{key}':{value}}}"  # LangGraph shows no result of a task that wrote untracked keys alone
    return r.choice(
        [
            alone if key != "u" else f"return {{'n':1,'{key}':{value}}}",
            f"return {{'log':['{name}'],'{key}':{value}}}",
            f"return {{'log':['{name}:%s'%state.get('{key}')]}}",
            f"return {{'log':['{name}:%s'%state.get('{key}')],'{key}':{value}}}",
            f"return {{'n':1}} if '{key}' in state else {{'n':2,'{key}':{value}}}",
        ]
    )


def _draw_overwrite(r: random.Random, name: str) -> str:
    return r.choice(
        [
            f"return {{'log':Overwrite(['{name} only'])}}",
            f"return {{'m':Overwrite({{'{name}':1}}),'n':1}}",
            f"return Command(update={{'n':Overwrite(7),'log':['{name}']}})",
            f"return {{'log':{{'__overwrite__':['{name} only']}}}}",
        ]
    )
