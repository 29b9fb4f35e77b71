// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cache

// API servers make UIDs as UUIDs, 36 bytes of text for 16 of content. An entry keeps those 16.

const (
	uuidSize = 16
	uuidText = 36
)

// uuidDashes has a bit for each place of a dash in a UUID.
const uuidDashes = 1<<8 | 1<<13 | 1<<18 | 1<<23

// appendUUID appends the content of a UUID, in hexadecimal digits in lower case. It reports false
// and appends nothing if the text is none.
func appendUUID(dst, text []byte) ([]byte, bool) {
	if len(text) != uuidText {
		return dst, false
	}
	from := len(dst)
	for i := 0; i < uuidText; {
		if uuidDashes>>i&1 != 0 {
			if text[i] != '-' {
				return dst[:from], false
			}
			i++
			continue
		}
		high, low := digit(text[i]), digit(text[i+1])
		if high < 0 || low < 0 {
			return dst[:from], false
		}
		dst = append(dst, byte(high<<4|low))
		i += 2
	}
	return dst, true
}

// formatUUID returns the text of a UUID.
func formatUUID(content string) (text [uuidText]byte) {
	i := 0
	for at := range len(content) {
		if uuidDashes>>i&1 != 0 {
			text[i] = '-'
			i++
		}
		text[i], text[i+1] = digits[content[at]>>4], digits[content[at]&15]
		i += 2
	}
	return text
}
