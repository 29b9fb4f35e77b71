// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"strings"
)

// roff is a text in the language of man pages. Source: man(7) and groff(7).
type roff struct{ bytes.Buffer }

// line writes a request with its arguments, or a line that is escaped already.
func (p *roff) line(words ...string) { p.WriteString(strings.Join(words, " ") + "\n") }

// text writes lines of a text. A line that begins as a request does is no request.
func (p *roff) text(text string) {
	for line := range strings.Lines(text) {
		line = escape(strings.TrimRight(line, "\n"))
		if strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'") {
			line = `\&` + line
		}
		p.line(line)
	}
}

// paragraphs writes a help text: paragraphs are filled, and lines that are indented stay as
// they are.
func (p *roff) paragraphs(text string) {
	for i, paragraph := range strings.Split(strings.TrimSpace(text), "\n\n") {
		if i > 0 {
			p.line(".PP")
		}
		kept := false // in lines that stay as they are
		for line := range strings.Lines(paragraph) {
			if indented := strings.HasPrefix(line, " ") || strings.HasPrefix(line, "\t"); indented != kept {
				kept = indented
				if kept {
					p.line(".nf")
				} else {
					p.line(".fi")
				}
			}
			p.text(line)
		}
		if kept {
			p.line(".fi")
		}
	}
}

// verbatim writes lines that stay as they are, without their common indentation.
func (p *roff) verbatim(text string) {
	p.line(".nf")
	for line := range strings.Lines(text) {
		if line = strings.TrimPrefix(line, "  "); strings.TrimSpace(line) == "" {
			p.line(".sp")
			continue
		}
		p.text(line)
	}
	p.line(".fi")
}

// escape writes a text so that each character stands for itself. A dash is the one of
// ASCII, so that an option can be copied from the page.
func escape(text string) string {
	return strings.NewReplacer(`\`, `\e`, "-", `\-`, "'", `\(aq`, "`", `\(ga`, "^", `\(ha`, "~", `\(ti`).Replace(text)
}

func bold(text string) string { return `\fB` + escape(text) + `\fR` }

func italic(text string) string { return `\fI` + escape(text) + `\fR` }

// quote makes one argument of a text.
func quote(text string) string { return `"` + strings.ReplaceAll(escape(text), `"`, `\(dq`) + `"` }
