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

// scrubber takes secrets out of texts that others wrote: errors of a library, answers of
// a server. Such a text can hold a secret in another form than we know it: within an
// address that was made of it, quoted, escaped, in parts. So it is compared word by word, a
// word being letters and digits: each word that is one of a secret's, or has one within, is
// hidden, and so is each URL.
type scrubber struct {
	whole map[string]bool // words that are hidden where they are the whole word
	parts []string        // words that are hidden within words as well
}

// shortest is the length of a word from which it is hidden within others. Below, it is
// hidden where it stands alone.
const shortest = 4

// add makes all words of a secret hidden.
func (s *scrubber) add(secret string) {
	for _, form := range []string{secret, unescaped(secret)} {
		for _, word := range strings.FieldsFunc(form, notOfWord) {
			s.addWord(strings.ToLower(word))
		}
	}
}

func (s *scrubber) addWord(word string) {
	if s.whole == nil {
		s.whole = map[string]bool{}
	}
	if s.whole[word] {
		return
	}
	s.whole[word] = true
	if utf8.RuneCountInString(word) >= shortest {
		s.parts = append(s.parts, word)
	}
}

// addUser makes a name and a password hidden, and the header that is made of them.
func (s *scrubber) addUser(user *url.Userinfo) {
	if user == nil {
		return
	}
	password, _ := user.Password()
	s.add(user.Username())
	s.add(password)
	s.add(base64.StdEncoding.EncodeToString([]byte(user.Username() + ":" + password)))
}

// addPath makes hidden what looks like a token in a path: "hooks" does not.
func (s *scrubber) addPath(path string) {
	for _, word := range strings.FieldsFunc(path, notOfWord) {
		if len(word) >= 16 || len(word) >= 8 && strings.ContainsAny(word, "0123456789") {
			s.addWord(strings.ToLower(word))
		}
	}
}

// addService makes everything of the URL of a service hidden but its scheme and the names
// of its options: where the token is depends on the service.
func (s *scrubber) addService(raw string) {
	u, err := url.Parse(raw)
	if err != nil {
		s.add(raw)
		return
	}
	s.addUser(u.User)
	s.add(u.Opaque)
	s.add(u.Fragment)
	for _, part := range strings.FieldsFunc(u.Host+" "+u.Path, notOfWord) {
		if utf8.RuneCountInString(part) >= shortest && !ordinary[strings.ToLower(part)] {
			s.addWord(strings.ToLower(part))
		}
	}
	for _, values := range u.Query() {
		for _, value := range values {
			if utf8.RuneCountInString(value) >= shortest && !ordinary[strings.ToLower(value)] {
				s.add(value)
			}
		}
	}
}

// ordinary are words that stand in the place of a host or of a token in the URLs of services.
var ordinary = map[string]bool{
	"telegram": true, "webhook": true, "slack": true, "https": true, "http": true, "hooks": true, "services": true,
	"localhost": true, "shoutrrr": true,
}

func unescaped(s string) string {
	if plain, err := url.PathUnescape(s); err == nil {
		return plain
	}
	return s
}

func notOfWord(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }

// anyURL finds addresses. What follows the scheme is taken as far as it can reach.
var anyURL = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>` + "`" + `]*`)

// longest is how much is kept of a text that others wrote, in bytes.
const longest = 200

// clean returns a text without secrets, on one line, and not long.
func (s *scrubber) clean(text string) string {
	text = strings.ToValidUTF8(text, "")
	text = anyURL.ReplaceAllString(text, "(url)")
	var b strings.Builder
	for text != "" {
		size := strings.IndexFunc(text, notOfWord)
		if size < 0 {
			size = len(text)
		}
		if word := text[:size]; s.hides(strings.ToLower(word)) {
			b.WriteString(hidden)
		} else {
			b.WriteString(word)
		}
		text = text[size:]
		if text == "" {
			break
		}
		r, size := utf8.DecodeRuneInString(text)
		if unicode.IsPrint(r) {
			b.WriteRune(r)
		} else {
			b.WriteByte(' ')
		}
		text = text[size:]
	}
	return cut(strings.TrimSpace(b.String()), longest)
}

func (s *scrubber) hides(word string) bool {
	if s.whole[word] {
		return true
	}
	for _, part := range s.parts {
		if strings.Contains(word, part) {
			return true
		}
	}
	return false
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
