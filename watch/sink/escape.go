// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink

import (
	"html"
	"net/url"
	"regexp"
	"strings"
)

// escaper returns a text so that a service shows it as it is: names and values that somebody
// wrote into a cluster must not notify people or show a link under other words.
type escaper func(string) string

// Values are written with an invisible space where a service has no escapes.
const gap = "\u200b"

// The first sign of what a service acts on.
var (
	// atPerson is an @ that begins a mention: one within a word, as in a digest of an image or
	// an address of mail, mentions nobody.
	atPerson = regexp.MustCompile(`(^|[^\pL\pN._-])@([^\s@\x{200b}])`)
	// atAll is the mention of Discord that counts within words, too.
	atAll = regexp.MustCompile(`(?i)@(everyone|here)`)
	// angled is what opens a mention or a link in angle brackets, or a tag.
	angled = regexp.MustCompile(`<([^\s<])`)
	// lineStart are signs that change a whole line of Markdown.
	lineStart = regexp.MustCompile(`(?m)^(\s*)([#>+=-])`)
)

// entities is for what reads &, < and > as HTML does, and all mentions and links behind a <.
// Source: https://docs.slack.dev/messaging/formatting-message-text, Escaping text.
var entities = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace

// markdownSigns are those that a backslash takes the meaning of.
var markdownSigns = strings.NewReplacer(
	`\`, `\\`, "`", "\\`", `*`, `\*`, `_`, `\_`, `~`, `\~`, `|`, `\|`, `[`, `\[`, `]`, `\]`,
)

func apartAngles(s string) string { return angled.ReplaceAllString(s, "<"+gap+"$1") }

func apartMentions(s string) string {
	// Twice, since the sign behind one mention may be the sign before the next.
	for range 2 {
		s = atPerson.ReplaceAllString(s, "$1@"+gap+"$2")
	}
	return atAll.ReplaceAllString(s, "@"+gap+"$1")
}

// plain is for services that know no markup, and yet mentions.
func plain(s string) string { return apartMentions(apartAngles(s)) }

// markdown is for services that know Markdown and mentions.
func markdown(s string) string {
	s = lineStart.ReplaceAllString(markdownSigns.Replace(s), `$1\$2`)
	return apartMentions(apartAngles(s))
}

// markdownHTML is for Markdown in which HTML counts as well.
func markdownHTML(s string) string {
	s = lineStart.ReplaceAllString(markdownSigns.Replace(s), `$1\$2`)
	return apartMentions(entities(s))
}

// telegramV2Signs all want a backslash.
// Source: https://core.telegram.org/bots/api, MarkdownV2 style.
var telegramV2Signs = regexp.MustCompile("[_*\\[\\]()~`>#+\\-=|{}.!\\\\]")

// escapes are those of the services that act on what is in a text. All others show it as it is.
// Source: github.com/nicholas-fedor/shoutrrr v0.13.2, pkg/services, and the documentation of
// each service on the formatting of messages.
var escapes = map[string]escaper{
	"discord":    markdown,
	"googlechat": plain,
	"gotify":     markdown,
	"hangouts":   plain,
	"lark":       plain,
	"matrix":     plain,
	"mattermost": markdown,
	"notifiarr":  markdown,
	"rocketchat": markdown,
	"slack":      entities,
	"teams":      markdownHTML,
	"wecom":      plain,
	"zulip":      markdown,
}

func asIs(s string) string { return s }

// escaperOf returns the escapes of a service as its URL configures it.
func escaperOf(scheme string, u *url.URL) escaper {
	switch scheme {
	case "smtp":
		if isOn(option(u, "usehtml")) {
			return html.EscapeString
		}
	case "telegram":
		switch strings.ToLower(option(u, "parsemode")) {
		case "html":
			return func(s string) string { return apartMentions(html.EscapeString(s)) }
		case "markdown":
			return func(s string) string { return apartMentions(markdownSigns.Replace(s)) }
		case "markdownv2":
			return func(s string) string {
				return apartMentions(telegramV2Signs.ReplaceAllString(s, `\$0`))
			}
		}
		return apartMentions // the library escapes it where it makes it HTML
	}
	if escape, known := escapes[scheme]; known {
		return escape
	}
	return asIs
}

// option returns an option of a service's URL, whose names are in any case.
func option(u *url.URL, name string) string {
	for key, values := range u.Query() {
		if strings.EqualFold(key, name) && len(values) > 0 {
			return values[len(values)-1]
		}
	}
	return ""
}

// isOn reports whether the library takes a text for true.
// Source: github.com/nicholas-fedor/shoutrrr v0.13.2, pkg/format, ParseBool.
func isOn(text string) bool {
	switch strings.ToLower(text) {
	case "true", "1", "yes", "y":
		return true
	}
	return false
}
