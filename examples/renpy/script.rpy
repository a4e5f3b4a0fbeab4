# A keeper who knows the script: the player types a question, and reads the answer while it is written.

init python:
    from cicada_game import Oracle

    oracle = Oracle("ws://127.0.0.1:8080/live")    # the address that `make up` prints
    config.quit_callbacks.append(oracle.close)

    def escaped(text):
        return text.replace("{", "{{").replace("[", "[[")    # Ren'Py's own markup

default line = None

screen answer():
    timer 0.1 repeat True action Function(renpy.restart_interaction)
    frame:
        vbox:
            text escaped(line.shown.text or "…")
            for note in line.shown.footnotes:
                text escaped(note) size 16
    if line.ended:
        textbutton "Go on" action Return()
    else:
        textbutton "Stop" action [Function(line.cancel), Return()]

label start:
    $ question = renpy.input("What do you ask the keeper?").strip()
    if not question:
        return
    $ line = oracle.ask(question, episodes=["ep1"], conversation="the-keeper")
    call screen answer
    jump start
