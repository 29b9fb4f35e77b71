// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package documenttest

import (
	"regexp"
	"slices"
	"strings"
)

// A Step is a command of a block that shows a terminal, and what it prints.
type Step struct{ Command, Output string }

// Steps returns the steps of a block in which each command follows a "$ ".
func (b Block) Steps() []Step {
	var steps []Step
	for line := range strings.Lines(b.Text) {
		if command, ok := strings.CutPrefix(line, "$ "); ok {
			steps = append(steps, Step{Command: strings.TrimSpace(command)})
		} else if len(steps) > 0 {
			steps[len(steps)-1].Output += line
		}
	}
	return steps
}

// description is the text behind a command, in a block that lists commands.
var description = regexp.MustCompile(`(?: {2,}| +# ).*$`)

// continued is the end of a line that goes on in the next one.
var continued = regexp.MustCompile(`\s*\\\n\s*`)

// Commands returns the commands of a block that lists them, a line each, without
// descriptions: those begin behind two spaces or a "#". A backslash joins lines.
func (b Block) Commands() []string {
	var commands []string
	text := continued.ReplaceAllString(b.Text, " ")
	for line := range strings.Lines(text) {
		line = description.ReplaceAllString(strings.TrimSpace(strings.ReplaceAll(line, "\t", " ")), "")
		if line != "" && !strings.HasPrefix(line, "#") {
			commands = append(commands, line)
		}
	}
	return commands
}

// varying is what is another in each run, and the word that stands for it.
var varying = []struct {
	pattern *regexp.Regexp
	word    string
}{
	{regexp.MustCompile(`\b20\d\d[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?Z?`), "TIME"},
	{regexp.MustCompile(`\b\d\d:\d\d:\d\d(?:\.\d+)?\b`), "TIME"},
	{regexp.MustCompile(`\b\d+\.\d+\.\d+\.\d+(?::\d+)?\b`), "ADDRESS"},
	{regexp.MustCompile(`(-[0-9a-f]{8,10})-[bcdfghjklmnpqrstvwxz2456789]{5}\b`), "$1-POD"},
	{regexp.MustCompile(`[^\s"]*/kubeconfig\b|[^\s"]*\.kubeconfig\b`), "KUBECONFIG"},
	{regexp.MustCompile(`"elapsed":"[\d.]+s"`), `"elapsed":"TIME"`},
	{regexp.MustCompile(`\(hidden [0-9a-f]{6}\)`), "(hidden)"},
	{regexp.MustCompile(`\b\d+ restarts?\b|\brestart \d+\b`), "RESTARTS"},
	{regexp.MustCompile(`\bnode-\d+\b`), "NODE"},
	{regexp.MustCompile(`, run \d+\b`), ", run N"},
	// Ages stand alone, as in the columns of kubectl and at the end of sentences; "exit-after=2s" is no age.
	{regexp.MustCompile(`(^|\s)\d+(?:\.\d+)? (?:ms|s|min)\b`), "$1TIME"},
	{regexp.MustCompile(`(^|\s)(?:\d+(?:\.\d+)?(?:ms|s|m|h))+(\s|$)`), "$1TIME$2"},
	{regexp.MustCompile(`[ \t]+`), " "},
}

// normal returns a line with words in the place of what is another in each run. Columns are
// one space apart.
func normal(line string) string {
	line = strings.TrimRight(line, " \t\n")
	for _, v := range varying {
		line = v.pattern.ReplaceAllString(line, v.word)
	}
	return strings.TrimSpace(line)
}

// Same reports whether a program printed what a document shows: line by line, without what
// is another in each run, such as times, addresses, names that were drawn, and the widths of
// columns. A "…" in the document stands for any text of the line.
func Same(shown, printed string) bool {
	want, got := strings.Split(strings.TrimSpace(shown), "\n"), strings.Split(strings.TrimSpace(printed), "\n")
	if len(want) != len(got) {
		return false
	}
	for i := range want {
		if !SameLine(want[i], got[i]) {
			return false
		}
	}
	return true
}

// SameLine is as Same, for one line.
func SameLine(shown, printed string) bool {
	parts := strings.Split(normal(shown), "…")
	for i, part := range parts {
		parts[i] = regexp.QuoteMeta(part)
	}
	return regexp.MustCompile("^" + strings.Join(parts, ".*") + "$").MatchString(normal(printed))
}

// Missing returns the first line of a block, commands and empty lines left out, that a text does
// not have behind the line before, or "".
func Missing(shown, printed string) string {
	lines := strings.Split(printed, "\n")
	for want := range strings.Lines(shown) {
		want = strings.TrimSuffix(want, "\n")
		if strings.TrimSpace(want) == "" || strings.HasPrefix(want, "$ ") {
			continue
		}
		i := slices.IndexFunc(lines, func(line string) bool { return SameLine(want, line) })
		if i < 0 {
			return want
		}
		lines = lines[i+1:]
	}
	return ""
}
