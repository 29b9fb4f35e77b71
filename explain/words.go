// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/setpoint-io/setpoint/runs"
)

// past has the verbs of writes as a sentence has them.
var past = map[string]string{
	"create": "created", "update": "updated", "patch": "changed", "apply": "applied", "delete": "deleted", "deletecollection": "deleted all",
}

// oneSort names writes of one verb, kind and subresource: "created Pod shop/web-1 and 2 more".
func oneSort(verb string, writes []*runs.Write, subresource string, reasons []runs.Reason) string {
	first := writes[0]
	text := past[verb]
	if text == "" {
		text = verb
	}
	if subresource != "" {
		text += " the " + subresource + " of"
	}
	text += " " + first.Object.String()
	if len(writes) > 1 {
		text += fmt.Sprintf(" and %d more", len(writes)-1)
	}
	switch {
	case first.Code != 0 && first.Unknown:
		text += fmt.Sprintf(" (the server answered %d%s)", first.Code, webhookText(reasons))
	case first.Code != 0:
		text += fmt.Sprintf(" (refused with %d)", first.Code)
	case first.Unknown:
		text += " (no answer)"
	}
	if len(first.Fields) > 0 && len(writes) == 1 {
		fields := elements(first.Fields)
		text += ": " + strings.Join(fields[:min(len(fields), mostPaths)], ", ")
		if more := len(fields) + first.MoreFields - mostPaths; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
	}
	return text
}

// webhookText repeats what a run has stated about a webhook whose failure made the server answer with an error.
func webhookText(reasons []runs.Reason) string {
	for i := range reasons {
		if reasons[i].Code == "WebhookFailed" {
			said, _, _ := strings.Cut(reasons[i].Sentence(), ", so ")
			return ": " + said
		}
	}
	return ""
}

// elements returns paths without what is below an element of a list, each once: "status.conditions[Ready]" stands for all
// fields of the condition.
func elements(paths []string) (short []string) {
	for _, path := range paths {
		if end := strings.IndexByte(path, ']'); end >= 0 {
			path = path[:end+1]
		}
		if !slices.Contains(short, path) {
			short = append(short, path)
		}
	}
	return short
}

// ago says how long ago a time is, as kubectl does.
func ago(now, then time.Time) string { return ShortTime(now.Sub(then)) }

// ShortTime writes a time in one unit, as answers do: "12 s", "4 min", "3 h", "2 days". A negative time is "0 s".
func ShortTime(d time.Duration) string {
	switch d = max(d, 0); {
	case d < 2*time.Minute:
		return fmt.Sprintf("%d s", int(d.Seconds()))
	case d < 2*time.Hour:
		return fmt.Sprintf("%d min", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h", int(d.Hours()))
	}
	return fmt.Sprintf("%d days", int(d.Hours()/24))
}

// alike counts the objects that say the same as the one before.
func alike(n int) string {
	if n == 1 {
		return "1 more says the same"
	}
	return fmt.Sprintf("%d more say the same", n)
}

// subject is a controller as a sentence begins with it. A name that may be a word is marked as a name.
func subject(controller string) string {
	if strings.ContainsAny(controller, "-./:") {
		return controller
	}
	return "the controller " + controller
}

// capital begins a sentence.
func capital(text string) string {
	if word, _, _ := strings.Cut(text, " "); word == "" || strings.ContainsAny(word, "-./:") {
		return text // it begins with a name
	}
	first, size := utf8.DecodeRuneInString(text)
	if first == utf8.RuneError {
		return text
	}
	return string(unicode.ToUpper(first)) + text[size:]
}
