// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"text/template"
	"time"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/format"
)

// The markups of messages: what a service interprets in a text.
const (
	// MarkupMarkdown is for Discord, Mattermost, Rocket.Chat, Teams and Zulip: Markdown,
	// mentions and HTML.
	MarkupMarkdown = "markdown"
	// MarkupSlack is for Slack, and for what takes &, < and > as HTML does.
	MarkupSlack = "slack"
	// MarkupPlain is for services that know mentions and no other markup.
	MarkupPlain = "plain"
	// MarkupNone is for mail, and for programs: texts are as they are.
	MarkupNone = "none"
)

// markups escape a text so that a service shows it as it is: a name or a value in the cluster
// must not notify people or show a link under other words.
var markups = map[string]func(string) string{
	MarkupMarkdown: markdown,
	MarkupSlack:    entities,
	MarkupPlain:    plain,
	MarkupNone:     func(s string) string { return s },
}

// gap is an invisible space, where a service has no escapes.
const gap = "\u200b"

var (
	// atPerson is an @ that begins a mention. An @ within a word, as in a digest of an image or an
	// address of mail, does not.
	atPerson = regexp.MustCompile(`(^|[^\pL\pN._-])@([^\s@\x{200b}])`)
	// atAll is the mention of Discord that counts within words, too.
	atAll = regexp.MustCompile(`(?i)@(everyone|here)`)
	// angled is what opens a mention or a link in angle brackets, or a tag.
	angled = regexp.MustCompile(`<([^\s<])`)
	// lineStart are signs that change a whole line of Markdown.
	lineStart = regexp.MustCompile(`(?m)^(\s*)([#>+=-])`)
	// markdownSigns are the signs that a backslash escapes.
	markdownSigns = regexp.MustCompile("[\\\\`*_~|\\[\\]]")
)

// entities is for mentions and links that all begin with a <.
// Source: https://docs.slack.dev/messaging/formatting-message-text, Escaping text.
var entities = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace

func plain(s string) string {
	s = angled.ReplaceAllString(s, "<"+gap+"$1")
	// Twice, since the sign behind one mention may be the sign before the next.
	for range 2 {
		s = atPerson.ReplaceAllString(s, "$1@"+gap+"$2")
	}
	return atAll.ReplaceAllString(s, "@"+gap+"$1")
}

func markdown(s string) string {
	return plain(lineStart.ReplaceAllString(markdownSigns.ReplaceAllString(s, `\$0`), `$1\$2`))
}

// longestLine is where a line about an event is cut, in bytes: chat services take 2,000 and more.
const longestLine = 1000

// parseTemplate returns a template of events that can call, beside the functions of
// text/template:
//
//   - words, which says in a line each what happened, escaped for the markup;
//   - escape, which escapes any value for the markup, such as {{escape .Key}};
//   - json, which writes any value as JSON, with its quotes.
func parseTemplate(text, markup string) (*template.Template, error) {
	escape, known := markups[markup]
	if !known {
		return nil, fmt.Errorf("%q is none of %s, %s, %s and %s", markup, MarkupMarkdown, MarkupSlack, MarkupPlain, MarkupNone)
	}
	return template.New("message").Option("missingkey=error").Funcs(template.FuncMap{
		"words": func(events ...any) (string, error) {
			var lines []string
			for _, v := range events {
				some, ok := v.([]*event.Event)
				if e, one := v.(*event.Event); one {
					some, ok = []*event.Event{e}, true
				}
				if !ok {
					return "", errors.New("words is of events")
				}
				for _, e := range some {
					lines = append(lines, escape(cut(format.Sentence(e), longestLine)))
				}
			}
			return strings.Join(lines, "\n"), nil
		},
		"escape": func(v any) string { return escape(fmt.Sprint(v)) },
		"json": func(v any) (string, error) {
			b, err := json.Marshal(v)
			return string(b), err
		},
	}).Parse(text)
}

// tryBody reports why the template of a body does not make JSON of any event.
func tryBody(t *template.Template) error {
	e := &event.Event{
		ID: "id", Time: time.Unix(0, 0), Verb: event.Updated, Kind: testKind, Key: object.Key{Name: `a "name"`},
		Summary: "two\nlines \\", Fields: []event.Field{{Path: `spec."quoted"`, Op: event.Replace, From: "a\nb", To: `"`}},
	}
	var b strings.Builder
	if err := t.Execute(&b, []*event.Event{e}); err != nil {
		return err
	}
	if !json.Valid([]byte(b.String())) {
		return errors.New("does not make JSON of every event; write texts as {{json …}}, such as {\"text\": {{json (words .)}}}")
	}
	return nil
}
