// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package documenttest

import (
	"fmt"
	"regexp"
	"strings"
	"unicode"
)

// A Block is a fenced block of a document.
type Block struct {
	File     string // slash-separated, relative to the root of the repository
	Line     int    // of its first fence, from 1
	Name     string // of the heading above it, as in links: "a-slow-rollout", "a-slow-rollout-2" for the second one
	Language string // "text" if the fence has none
	Text     string // with a line break at the end, without the indentation of the fence

	// Tests are the tests that check it, as "cmd/setpoint TestDocuments/watch".
	Tests []string

	// NotRun is the reason for which no test does.
	NotRun string
}

// String says where the block is.
func (b Block) String() string { return fmt.Sprintf("%s:%d", b.File, b.Line) }

var (
	fence   = regexp.MustCompile("^( *)(```+) *([^`]*)$")
	heading = regexp.MustCompile("^#{1,6} +(.*)$")
	comment = regexp.MustCompile(`^ *<!-- *(test|test of ([a-z]+)|not run): *(.*?) *-->$`)
)

// Parse returns the blocks of a document.
func Parse(file, text string) ([]Block, error) {
	r := reader{file: file, byLanguage: map[string][]string{}, names: map[string]int{}, section: "top"}
	for i, line := range strings.Split(text, "\n") {
		if err := r.line(i+1, line); err != nil {
			return nil, err
		}
	}
	if r.open {
		return nil, fmt.Errorf("%s: the block has no end", r.blocks[len(r.blocks)-1])
	}
	if r.claim != nil {
		return nil, fmt.Errorf("%s:%d: no block follows the comment", file, r.claim.Line)
	}
	for i, b := range r.blocks {
		if b.Tests == nil && b.NotRun == "" {
			r.blocks[i].Tests = r.byLanguage[b.Language]
		}
		delete(r.unused, b.Language)
	}
	for language, line := range r.unused {
		return nil, fmt.Errorf("%s:%d: no block has the language %s", file, line, language)
	}
	return r.blocks, nil
}

// reader reads a document line by line.
type reader struct {
	file       string
	section    string
	names      map[string]int // how many blocks a section has
	byLanguage map[string][]string
	unused     map[string]int // lines of the comments in byLanguage
	blocks     []Block
	open       bool   // in the last block
	fence      string // with which it began
	indent     int
	claim      *Block // a comment that waits for its block
}

func (r *reader) line(number int, line string) error {
	if r.open {
		r.within(line)
		return nil
	}
	if m := fence.FindStringSubmatch(line); m != nil {
		r.begin(number, m)
		return nil
	}
	if m := comment.FindStringSubmatch(line); m != nil {
		return r.comment(number, m)
	}
	if r.claim != nil {
		return fmt.Errorf("%s:%d: the comment is for a block, which must begin in the next line", r.file, r.claim.Line)
	}
	if m := heading.FindStringSubmatch(line); m != nil {
		r.section = slug(m[1])
	}
	return nil
}

func (r *reader) within(line string) {
	b := &r.blocks[len(r.blocks)-1]
	if strings.TrimSpace(line) == r.fence {
		r.open = false
		return
	}
	for range r.indent {
		line = strings.TrimPrefix(line, " ")
	}
	b.Text += line + "\n"
}

func (r *reader) begin(number int, m []string) {
	b := Block{File: r.file, Line: number, Language: strings.TrimSpace(m[3]), Name: r.section}
	if b.Language == "" {
		b.Language = "text"
	}
	r.names[r.section]++
	if n := r.names[r.section]; n > 1 {
		b.Name = fmt.Sprintf("%s-%d", r.section, n)
	}
	if r.claim != nil {
		b.Tests, b.NotRun = r.claim.Tests, r.claim.NotRun
		r.claim = nil
	}
	r.blocks = append(r.blocks, b)
	r.open, r.indent, r.fence = true, len(m[1]), m[2]
}

func (r *reader) comment(number int, m []string) error {
	kind, language, value := m[1], m[2], m[3]
	if value == "" {
		return fmt.Errorf("%s:%d: the comment names no test and no reason", r.file, number)
	}
	claim := Block{Line: number}
	if kind == "not run" {
		claim.NotRun = value
	} else {
		for test := range strings.SplitSeq(value, ";") {
			claim.Tests = append(claim.Tests, strings.Join(strings.Fields(test), " "))
		}
	}
	if language == "" {
		r.claim = &claim
		return nil
	}
	if r.byLanguage[language] != nil {
		return fmt.Errorf("%s:%d: there is a comment for blocks of %s already", r.file, number, language)
	}
	if r.unused == nil {
		r.unused = map[string]int{}
	}
	r.byLanguage[language], r.unused[language] = claim.Tests, number
	return nil
}

// slug returns a heading as links name it: in lower case, without punctuation, and with dashes.
func slug(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		case r == ' ':
			return '-'
		}
		return -1
	}, strings.TrimSpace(heading))
}
