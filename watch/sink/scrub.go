// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"encoding/base64"
	"net/url"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"
)

// scrubber takes secrets out of texts from outside, such as the answer of a server. It hides
// every URL, and the words of each secret: a word is a run of letters and digits, so that quotes
// and escapes around it do not matter.
type scrubber struct {
	words   []string // as regular expressions
	pattern *regexp.Regexp
}

// shortest is the length of a word from which on it is hidden within others. Below, it is
// hidden where it stands alone.
const shortest = 4

// add hides all words of a secret.
func (s *scrubber) add(secret string) {
	plain, _ := url.PathUnescape(secret)
	for _, form := range []string{secret, plain} {
		for _, word := range strings.FieldsFunc(form, notOfWord) {
			s.addWord(word)
		}
	}
}

func (s *scrubber) addWord(word string) {
	if quoted := regexp.QuoteMeta(word); utf8.RuneCountInString(word) < shortest {
		s.words = append(s.words, `\b`+quoted+`\b`)
	} else {
		s.words = append(s.words, `[\pL\pN]*`+quoted+`[\pL\pN]*`)
	}
	s.pattern = regexp.MustCompile("(?i)" + strings.Join(s.words, "|"))
}

// addURL hides what can be secret in a URL: a name with a password, and the header that is made
// of them, the query, and what looks like a token in the path.
func (s *scrubber) addURL(u *url.URL) {
	if u.User != nil {
		password, _ := u.User.Password()
		s.add(u.User.Username())
		s.add(password)
		s.add(base64.StdEncoding.EncodeToString([]byte(u.User.Username() + ":" + password)))
	}
	s.add(u.RawQuery)
	for _, word := range strings.FieldsFunc(u.Path, notOfWord) {
		if len(word) >= 16 || len(word) >= 8 && strings.ContainsAny(word, "0123456789") {
			s.addWord(word)
		}
	}
}

func notOfWord(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }

// anyURL finds addresses. What follows the scheme is taken as far as it can reach.
var anyURL = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>` + "`" + `]*`)

// longest is how much is kept of a text from outside, in bytes.
const longest = 200

// clean returns a text without secrets, on one line, and not long.
func (s *scrubber) clean(text string) string {
	text = anyURL.ReplaceAllString(strings.ToValidUTF8(text, ""), "(url)")
	if s.pattern != nil {
		text = s.pattern.ReplaceAllString(text, hidden)
	}
	text = strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return ' '
	}, text)
	return cut(strings.TrimSpace(text), longest)
}

// beginning returns a text of which no more than so many bytes were read. If it is that long, its last word may be the first part of a
// secret, which a scrubber does not know. So it is left out.
func beginning(text string, most int) string {
	if len(text) < most {
		return text
	}
	return strings.TrimRightFunc(strings.ToValidUTF8(text, ""), func(r rune) bool { return !notOfWord(r) })
}

// cut shortens a text to a number of bytes, and marks it. It does not cut letters in two.
func cut(text string, limit int) string {
	const mark = "…"
	if len(text) <= limit {
		return text
	}
	end := max(limit-len(mark), 0)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + mark
}
