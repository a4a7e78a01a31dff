"""Levels of an order: `plan` has as few writes as the order can be had with, by the frontend's `ties`.

`bands` keep classes apart, `class_bands` plan each by itself. `withholding` says where no level may be written, by what
`operators` said and what a level could stop. `free_quota` says who would fit now, `adherence` how well admissions follow.
"""
