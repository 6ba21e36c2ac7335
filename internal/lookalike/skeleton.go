package lookalike

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Skeleton replaces every character by what it looks like.
func Skeleton(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	for _, r := range s {
		if r < utf8.RuneSelf {
			if r >= ' ' && r != 0x7f {
				b.WriteRune(unicode.ToLower(r))
			}
			continue
		}
		if !Hidden(r) && !unicode.Is(unicode.Mn, r) {
			b.WriteString(ascii(r))
		}
	}
	return b.String()
}

// ascii returns the ASCII text that r resembles, in lower case, or r itself.
func ascii(r rune) string {
	switch {
	case r >= 0xFF01 && r <= 0xFF5E: // fullwidth forms
		r -= 0xFEE0
	case r >= 0x1D400 && r <= 0x1D6A3: // mathematical letters, 13 alphabets
		r = letter((r - 0x1D400) % 52)
	case r >= 0x1D7CE && r <= 0x1D7FF: // mathematical digits
		r = '0' + (r-0x1D7CE)%10
	case r >= 0x24B6 && r <= 0x24CF: // circled capitals
		r = 'a' + r - 0x24B6
	case r >= 0x24D0 && r <= 0x24E9: // circled letters
		r = 'a' + r - 0x24D0
	case r >= 0x249C && r <= 0x24B5: // letters in parentheses
		r = 'a' + r - 0x249C
	case r >= 0x1F130 && r <= 0x1F149: // squared capitals
		r = 'a' + r - 0x1F130
	case unicode.Is(unicode.Pd, r), r == 0x2212, r == 0x2043:
		r = '-'
	case unicode.Is(unicode.Pc, r):
		r = '_'
	case unicode.Is(unicode.Zs, r):
		r = ' '
	}
	for _, one := range [...]rune{r, unicode.ToLower(r)} {
		if text, ok := imitations()[one]; ok {
			return text
		}
	}
	return string(unicode.ToLower(r))
}

func letter(n rune) rune { return 'a' + n%26 }

// imitations are the characters that are taken for ASCII text, and what they are taken
// for. The table lists for each ASCII text the letters with diacritics, of the Greek,
// Cyrillic, Armenian and Cherokee scripts, and the letter-like signs that resemble it.
var imitations = sync.OnceValue(func() map[rune]string {
	out := map[rune]string{}
	for _, row := range compatible {
		for _, r := range row[1] {
			out[r] = row[0]
		}
	}
	for _, row := range [...][2]string{
		{"a", "àáâãäåāăąǎȁȃạảấầậắặɑαаᴀªⱥ"},
		{"b", "ƀɓьᏏʙвβᴃ"},
		{"c", "çćĉċčϲсᴄⅽƈȼ"},
		{"d", "ďđɗԁⅾᴅժ"},
		{"e", "èéêëēĕėęěȅȇẹẻẽếềệеєҽᴇℯⅇɛε℮ё"},
		{"f", "ƒϝẝғꜰ"},
		{"g", "ĝğġģǧɡɢցℊ"},
		{"h", "Ηĥħһհнʜℎℏ"},
		{"i", "ìíîïĩīĭįıǐɩιіїᎥⅰℹⅈ"},
		{"j", "ĵјϳյʝⅉ"},
		{"k", "ķĸκкᴋⱪк"},
		{"l", "ĺļľŀłⅼʟӏℓǀ"},
		{"m", "Μмⅿᴍ"},
		{"n", "Νñńņňŉŋռпɴηո"},
		{"o", "òóôõöøōŏőơǒοσоᴏօℴº"},
		{"p", "ρрᴘþ"},
		{"q", "ԛɋգ"},
		{"r", "ŕŗřгʀᴦ"},
		{"s", "ſśŝşšșѕꜱʂ"},
		{"t", "ţťŧțτтᴛ"},
		{"u", "μµùúûüũūŭůűųưǔυսᴜц"},
		{"v", "νѵᴠⅴ"},
		{"w", "ŵωѡԝᴡшա"},
		{"x", "×χхⅹ"},
		{"y", "Υýÿŷγуүʏ"},
		{"z", "Ζźżžᴢʐ"},
		{"ss", "ß"},
		{"ae", "æ"},
		{"oe", "œ"},
		{"ij", "ĳ"},
		{"ff", "ﬀ"},
		{"fi", "ﬁ"},
		{"fl", "ﬂ"},
		{"ffi", "ﬃ"},
		{"ffl", "ﬄ"},
		{"st", "ﬅﬆ"},
		{"dz", "ǆǳ"},
		{"lj", "ǉ"},
		{"nj", "ǌ"},
		{"0", "⁰₀٠۰०"},
		{"1", "¹₁١۱"},
		{"2", "²₂"},
		{"3", "³₃"},
		{"4", "⁴₄"},
		{"5", "⁵₅"},
		{"6", "⁶₆"},
		{"7", "⁷₇"},
		{"8", "⁸₈"},
		{"9", "⁹₉"},
		{".", "․·。｡"},
		{"/", "⁄∕⧸╱"},
		{"*", "∗⁎"},
	} {
		for _, r := range row[1] {
			out[r] = row[0]
		}
	}
	return out
})

// Hidden reports whether r shows as nothing or only as a blank although it is
// neither a space nor a line break: control and format characters, fillers,
// variation selectors, tags, private and unassigned code points.
func Hidden(r rune) bool {
	switch {
	case r == '\n' || r == '\t' || r == '\r' || r == ' ':
		return false
	case r < ' ' || r >= 0x7f && r < 0xA0:
		return true
	case r < 0x300:
		return r == 0xAD
	case r == 0x034F, r == 0x115F, r == 0x1160, r == 0x17B4, r == 0x17B5, r == 0x2800, r == 0x3164, r == 0xFFA0, r == 0xFFFC:
		return true
	case r >= 0x180B && r <= 0x180F, r >= 0xFE00 && r <= 0xFE0F, r >= 0xE0000 && r <= 0xE0FFF:
		return true
	}
	return !unicode.IsGraphic(r)
}
