"""Which dot products of bytes a processor has, by the signs of their factors; words for options of passes."""

#: None; of one factor that has a sign and one that has none (AVX512_VNNI); of two that have a sign, or two that have
#: none (AArch64's dotprod); all of them (AArch64's i8mm).
NONE, MIXED, SAME, ANY = "none", "mixed", "same", "any"

#: What passes say of their option for that.
HELP = "the processor has dot products of `none`, of bytes of `mixed` signs, of the `same` sign, or of `any`"
