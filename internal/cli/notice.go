// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
)

// notice is a record of a log, or several that are one line.
type notice struct {
	at       time.Time
	level    slog.Level
	message  string
	subjects []string // the values of the attribute that says what it is about
	subject  string   // the name of that attribute
	details  []detail // the other attributes
	err      string   // of the first record
	errs     int      // how many records have another error than the first
}

type detail struct{ key, value string }

// The attributes that say what a record is about, the first of them that it has. Records that differ in it
// are one line.
var subjects = []string{"kind", "sink", "namespace"}

// add adds an attribute.
func (n *notice) add(group string, a slog.Attr) {
	v := a.Value.Resolve()
	if v.Kind() == slog.KindGroup {
		inner := group
		if a.Key != "" {
			inner += a.Key + "."
		}
		for _, below := range v.Group() {
			n.add(inner, below)
		}
		return
	}
	key := group + a.Key
	text := printable(v.String())
	switch {
	case a.Equal(slog.Attr{}):
	case key == "error":
		n.err = text
	case text != "":
		n.details = append(n.details, detail{key, text})
	}
}

// about returns what the record is about, nil if it does not say. It takes the attribute out of the details.
func (n *notice) about() []string {
	for _, key := range subjects {
		if n.subjects != nil {
			break
		}
		i := slices.IndexFunc(n.details, func(d detail) bool { return d.key == key })
		if i >= 0 {
			n.subject, n.subjects = key, []string{n.details[i].value}
			n.details = slices.Delete(n.details, i, i+1)
		}
	}
	return n.subjects
}

// reason returns the class of what is wrong.
func (n *notice) reason() string {
	for _, d := range n.details {
		if d.key == "reason" {
			return d.value
		}
	}
	return ""
}

// join adds another notice to this one, if they differ in nothing that matters.
func (n *notice) join(other *notice) bool {
	if n.level != other.level || n.message != other.message || n.subject != other.subject || n.reason() != other.reason() {
		return false
	}
	for _, s := range other.subjects {
		if !slices.Contains(n.subjects, s) {
			n.subjects = append(n.subjects, s)
		}
	}
	// Of what differs, such as how long it took, nothing can be said for all.
	n.details = slices.DeleteFunc(n.details, func(d detail) bool { return !slices.Contains(other.details, d) })
	if n.err != other.err {
		n.errs++
	}
	return true
}

// mostSubjects is how many subjects a line names.
const mostSubjects = 5

// line returns the line of a notice.
func (n *notice) line(zone *time.Location) string {
	n.about()
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s %s", n.at.In(zone).Format("15:04:05"), n.mark(), printable(n.message))
	if len(n.subjects) > 0 {
		slices.Sort(n.subjects)
		named := n.subjects
		if len(named) > mostSubjects {
			named = append(slices.Clone(named[:mostSubjects-1]), fmt.Sprintf("%d more", len(named)-mostSubjects+1))
		}
		b.WriteString(": " + strings.Join(named, ", "))
	}
	var said []string
	for _, d := range n.details {
		if d.key == "reason" {
			said = append(said, d.value)
		} else {
			said = append(said, words(d.key)+" "+d.value)
		}
	}
	if len(said) > 0 {
		b.WriteString(" (" + strings.Join(said, ", ") + ")")
	}
	switch {
	case n.err == "":
	case n.errs > 0:
		b.WriteString(": for example " + n.err)
	default:
		b.WriteString(": " + n.err)
	}
	return b.String()
}

// mark returns the mark of a line: the same as of the steps of "setpoint up" where something ended well
// or badly.
func (n *notice) mark() string {
	switch {
	case recoveries[n.message]:
		return "✓"
	case n.level >= slog.LevelError:
		return "✗"
	case n.level >= slog.LevelWarn:
		return "!"
	}
	return " "
}

// recoveries are the messages that call a warning off. The library logs each at the level of its
// warning.
var recoveries = map[string]bool{
	"a kind has appeared":                                    true,
	"all kinds are known again":                              true,
	"the server says again which kinds there are":            true,
	"the first list of a kind has ended":                     true,
	"the sink works again":                                   true,
	"watching again":                                         true,
	"there is room again":                                    true,
	"the server answers":                                     true,
	"the namespace exists now":                               true,
	"a handler has caught up; changes were merged meanwhile": true,
	"the condition did not fail for an object now":           true,
	"an object that could not be used can be, or is gone":    true,
}

// words makes words of the name of an attribute: didYouMean is "did you mean".
func words(key string) string {
	var b strings.Builder
	for _, r := range key {
		if unicode.IsUpper(r) {
			b.WriteByte(' ')
			r = unicode.ToLower(r)
		}
		b.WriteRune(r)
	}
	return printable(b.String())
}

// printable returns a text on one line, with what a terminal would act on escaped.
func printable(text string) string {
	text = strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\t' || r == '\r' }), " ")
	if strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) }) {
		quoted := strconv.QuoteToGraphic(text)
		return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
	}
	return text
}
