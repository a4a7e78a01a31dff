"""The words of frontends: verbs, cards, marks on objects."""
