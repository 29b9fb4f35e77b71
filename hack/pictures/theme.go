// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// theme are the colours of a picture. Each colour of text has a contrast of at least 4.5
// against the background (WCAG 2.2, AA).
type theme struct {
	background, border, foreground, dimmed string
	colours                                map[int]string // 31 to 36, see style
}

// dark and light are those of GitHub's pages, whose pictures they are. Viewers that know no
// preference draw the dark one.
var (
	dark = theme{
		background: "#0d1117", border: "#30363d", foreground: "#e6edf3", dimmed: "#8b949e",
		colours: map[int]string{31: "#ff7b72", 32: "#56d364", 33: "#e3b341", 34: "#79c0ff", 35: "#d2a8ff", 36: "#56d4dd"},
	}
	light = theme{
		background: "#ffffff", border: "#d1d9e0", foreground: "#1f2328", dimmed: "#59636e",
		colours: map[int]string{31: "#cf222e", 32: "#116329", 33: "#7d4e00", 34: "#0550ae", 35: "#8250df", 36: "#16697a"},
	}
)

// themes are the rules of both, of which a reader's preference chooses one.
func themes() string {
	return dark.rules() + "@media (prefers-color-scheme:light){\n" + light.rules() + "}\n"
}

// rules gives each class of a picture its colour: w the window, b borders, f text, d dimmed
// text, and c1 to c6 the colours.
func (t theme) rules() string {
	var b strings.Builder
	fmt.Fprintf(&b, ".w{fill:%s;stroke:%s}.b{stroke:%s}.f{fill:%s}.d{fill:%s}", t.background, t.border, t.border, t.foreground, t.dimmed)
	for _, code := range slices.Sorted(maps.Keys(t.colours)) {
		fmt.Fprintf(&b, ".c%d{fill:%s}", code%10, t.colours[code])
	}
	return b.String() + "\n"
}

// class is the class of text in a style.
func (s style) class() string {
	switch {
	case s.colour != 0:
		return fmt.Sprintf("c%d", s.colour%10)
	case s.dim:
		return "d"
	}
	return "f"
}
