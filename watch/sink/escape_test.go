// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/sink"
)

// attacks are what people who may write to a cluster can put into values and names of managers.
var attacks = []string{
	"<!channel>", "<!here|x>", "<@U012AB3CD>", "<#C012AB3CD>", "<http://evil.example|status page>",
	"@everyone", "x@here", "<@123456789012345678>", "<@&123456789012345678>", "[status page](http://evil.example)",
	"@channel", "@all", "@@all", "@alice", "@**all**", "<users/all>", `<at user_id="all">x</at>`, "@room",
	"<b>bold</b>", "<a href='http://evil.example'>status page</a>", "# heading", "a_b_c *bold* `code`", `\[x](http://evil.example)`,
}

// acts are what each service acts on in a message.
var acts = map[string]*regexp.Regexp{
	"slack://hook:AAAAAAAAA-BBBBBBBBB-123456789123456789123456@webhook": regexp.MustCompile(`[<>]|&($|[^agl]|a[^m]|g[^t]|l[^t])`),
	"discord://token@123":                                                       regexp.MustCompile(`(?i)@(everyone|here)|<[@#:/]|(^|[^\\])(\\\\)*\[[^\]]*\]\(|(^|[^\\])(\\\\)*[*_~` + "`" + `|]`),
	"mattermost://host/token":                                                   regexp.MustCompile(`(^|[\s@<])@(all|channel|here|alice)|<[!@#h]|(^|[^\\])(\\\\)*\[[^\]]*\]\(`),
	"rocketchat://host/tokenA/tokenB":                                           regexp.MustCompile(`(^|[\s@<])@(all|here|alice)|<http|(^|[^\\])(\\\\)*\[[^\]]*\]\(`),
	"zulip://bot%40x.example:key@x.example?stream=a":                            regexp.MustCompile(`(^|[\s@])@\*|(^|[^\\])(\\\\)*\[[^\]]*\]\(`),
	"googlechat://chat.googleapis.com/v1/spaces/FOO/messages?key=bar&token=baz": regexp.MustCompile(`<(users/|http)`),
	"lark://open.larksuite.com/token":                                           regexp.MustCompile(`<at`),
	"wecom://key":                                                               regexp.MustCompile(`<@`),
	"telegram://110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw@telegram?chats=channel-1":                      regexp.MustCompile(`(^|[\s@<])@\w`),
	"telegram://110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw@telegram?chats=channel-1&parseMode=HTML":       regexp.MustCompile(`[<>]|(^|[\s@])@\w`),
	"telegram://110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw@telegram?chats=channel-1&parsemode=Markdownv2": regexp.MustCompile(`(^|[^\\])(\\\\)*[\[\](){}>*_~` + "`" + `#+=|.!-]`),
	"smtp://user:pw@mail.example.com/?from=a@example.com&to=b@example.com&UseHTML=Yes":                      regexp.MustCompile(`[<>]`),
	"teams://11111111-4444-4444-8444-cccccccccccc@22222222-4444-4444-8444-cccccccccccc/33333333012222222222333333333344/44444444-4444-4444-8444-cccccccccccc/V2ESyij_gAljSoUQHvZoZYzlpAoAXExyOl26dlf1xHEx05?host=test.webhook.office.com": regexp.MustCompile(`[<>]|(^|[^\\])(\\\\)*\[[^\]]*\]\(`),
}

func attacked(text string) *event.Event {
	e := made(1)
	e.Verb = event.Updated
	e.Fields = []event.Field{{Path: "spec.note", Op: event.Replace, From: "old", To: text, Class: event.Content}}
	e.Authors = []event.Author{{Manager: text, Operation: "Update"}}
	return e
}

// sentTo returns the message that a service is given.
func sentTo(t *testing.T, url, template string, e *event.Event) string {
	t.Helper()
	s := mustNotify(t, url, sink.Notify{Template: template})
	var got string
	sink.SendWith(s, func(message string) error { got = message; return nil })
	if r := s.Send(t.Context(), []*event.Event{e}); r.Done != 1 || r.Err != nil || r.Refused != nil {
		t.Fatalf("%s: %+v", template, r)
	}
	return got
}

func TestNobodyIsMentionedAndNothingLinkedByWhatSomebodyWroteIntoTheCluster(t *testing.T) {
	for url, act := range acts {
		scheme, _, _ := strings.Cut(url, ":")
		t.Run(scheme, func(t *testing.T) {
			for _, attack := range attacks {
				for _, template := range []string{"", "{{words .}}", "{{(index .Fields 0).To | escape}}"} {
					got := sentTo(t, url, template, attacked(attack))
					if found := act.FindString(got); found != "" {
						t.Errorf("of %q, the template %q makes %q, in which %s acts on %q", attack, template, got, scheme, found)
					}
				}
			}
		})
	}
}

func TestWhatIsHarmlessIsSentAsItIs(t *testing.T) {
	for _, text := range []string{"registry.example.com/web:1.2", "nginx@sha256:0a1b", "ops@example.com", "5 -> 3", "Zürich"} {
		for url := range acts {
			if strings.HasPrefix(url, "telegram") || strings.HasPrefix(url, "smtp") || strings.HasPrefix(url, "slack") || strings.HasPrefix(url, "teams") {
				continue // where > is written in another way, and shown as it is
			}
			if got := sentTo(t, url, "{{escape (index .Fields 0).To}}", attacked(text)); got != text {
				t.Errorf("%s is sent %q, want %q", url, got, text)
			}
		}
	}
	if got, want := sentTo(t, "slack://hook:AAAAAAAAA-BBBBBBBBB-123456789123456789123456@webhook", "*{{escape (index .Fields 0).To}}* <https://runbook|runbook>", attacked("a & b")), "*a &amp; b* <https://runbook|runbook>"; got != want {
		t.Errorf("a template's own markup is sent as %q, want %q", got, want)
	}
}
