"""What frontends are told and what they carry: verbs, cards, marks on objects."""
