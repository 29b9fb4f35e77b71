// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/setpoint-io/setpoint/internal/documenttest"
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

// acts are what services act on in a message, by the markup.
var acts = map[string]*regexp.Regexp{
	"slack":    regexp.MustCompile(`[<>]|&($|[^agl]|a[^m]|g[^t]|l[^t])`),
	"markdown": regexp.MustCompile(`(?i)@(everyone|here)|(^|[\s@<])@(all|channel|alice|room|\*)|<[@#:/!ahub]|(^|[^\\])(\\\\)*\[[^\]]*\]\(|(^|[^\\])(\\\\)*[*_~` + "`" + `|]`),
	"plain":    regexp.MustCompile(`<(users/|http|at|@)|(^|[\s@])@\w`),
}

func attacked(text string) *event.Event {
	e := made(1)
	e.Verb = event.Updated
	e.Fields = []event.Field{{Path: "spec.note", Op: event.Replace, From: "old", To: text, Class: event.Content}}
	e.Authors = []event.Author{{Manager: text, Operation: "Update"}}
	return e
}

// posted returns the bodies that a webhook posts.
func posted(t *testing.T, o sink.Webhook, events ...*event.Event) []map[string]any {
	t.Helper()
	var got []map[string]any
	o.URL = sink.NewSecret(serve(t, func(w http.ResponseWriter, r *http.Request) {
		var body map[string]any
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.Header.Get("Content-Type") != "application/json; charset=UTF-8" {
			t.Errorf("%v, %s", err, r.Header)
		}
		if text, _ := body["text"].(string); len(text) > 1500 {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		got = append(got, body)
	}))
	if r := hook(t, o, nil).Send(t.Context(), events); r.Done != len(events) || r.Err != nil || r.Refused != nil {
		t.Fatalf("%s: %+v", o.Body, r)
	}
	return got
}

func TestNobodyIsMentionedAndNothingLinkedByWhatSomebodyWroteIntoTheCluster(t *testing.T) {
	for markup, act := range acts {
		t.Run(markup, func(t *testing.T) {
			for _, attack := range attacks {
				for _, body := range []string{`{"text": {{json (words .)}}}`, `{"text": {{(index (index . 0).Fields 0).To | escape | json}}}`} {
					got := fmt.Sprint(posted(t, sink.Webhook{Body: body, Markup: markup}, attacked(attack))[0]["text"])
					if found := act.FindString(got); found != "" {
						t.Errorf("of %q, the template %q makes %q, in which a service acts on %q", attack, body, got, found)
					}
				}
			}
		})
	}
}

func TestWhatIsHarmlessIsSentAsItIs(t *testing.T) {
	const body = `{"text": {{json (printf "*%s* <https://runbook>" (escape (index (index . 0).Fields 0).To))}}}`
	for _, text := range []string{"registry.example.com/web:1.2", "nginx@sha256:0a1b", "ops@example.com", "5 -> 3", "Zürich"} {
		for _, markup := range []string{"markdown", "plain", "none"} {
			if got := posted(t, sink.Webhook{Body: body, Markup: markup}, attacked(text))[0]["text"]; got != "*"+text+"* <https://runbook>" {
				t.Errorf("as %s, %q is sent", markup, got)
			}
		}
	}
}

func TestSeveralEventsAreOneMessageAsLongAsItIsTaken(t *testing.T) {
	o := sink.Webhook{Body: `{"text": {{json (words .)}}}`, Mode: sink.ModeBatch}
	if got := posted(t, o, made(1), made(2)); len(got) != 1 || strings.Count(fmt.Sprint(got[0]["text"]), "\n") != 1 {
		t.Errorf("%q", got)
	}
	long := attacked("")
	long.Summary, long.Verb, long.Fields = strings.Repeat("é ", 2000), event.Settled, nil
	got := posted(t, o, long, long, long)
	if len(got) != 3 {
		t.Errorf("%d messages of lines that are cut at 1000 bytes; two with a line break are too long", len(got))
	}
}

func TestBodiesThatAreNotJSONAreRefused(t *testing.T) {
	for body, says := range map[string]string{
		`{"text": "{{words .}}"}`:        "does not make JSON",
		`{{words .}}`:                    "does not make JSON",
		`{{shout .}}`:                    "not defined",
		`{"text": {{json .Kind}}}`:       "can't evaluate",
		`{"text": {{json (words .ID)}}}`: "can't evaluate",
	} {
		err := sink.Options{Webhook: &sink.Webhook{URL: sink.NewSecret("https://x"), Body: body}}.Validate()
		if err == nil || !strings.Contains(err.Error(), "webhook.body: ") || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", body, err)
		}
	}
}

// recipes are the sinks of docs/watch-sinks.md for chat services, with the way to the text of
// the message in what they are sent.
var recipes = map[string][]any{
	"slack": {"text"}, "discord": {"content"}, "mattermost": {"text"}, "google-chat": {"text"}, "telegram": {"text"}, "ntfy": {"message"},
	"teams": {"attachments", 0, "content", "body", 0, "text"}, "gotify": {"message"}, "matrix": {"text"}, "zulip": {"text"},
}

func TestTheRecipesOfTheDocumentSendWhatServicesTake(t *testing.T) {
	var found []string
	for _, b := range documenttest.Blocks(t) {
		var file struct {
			Sinks []struct {
				Name         string
				sink.Options `yaml:",inline"`
			}
		}
		if err := yaml.Unmarshal([]byte(b.Text), &file); err != nil {
			t.Fatal(b, err)
		}
		for _, s := range file.Sinks {
			if s.Webhook == nil || s.Webhook.Body == "" {
				continue
			}
			found = append(found, s.Name)
			o := *s.Webhook
			o.URLFrom = sink.SecretRef{}
			for i := range o.Headers {
				o.Headers[i].From, o.Headers[i].Value = sink.SecretRef{}, sink.NewSecret("x")
			}
			var got any = posted(t, o, attacked("two\nlines"))[0]
			for _, step := range recipes[s.Name] {
				switch at := step.(type) {
				case string:
					got = got.(map[string]any)[at]
				case int:
					got = got.([]any)[at]
				}
			}
			if said, _ := got.(string); !strings.Contains(said, "team-a/web-1") {
				t.Errorf("%s is sent %q", s.Name, got)
			}
		}
	}
	slices.Sort(found)
	if want := []string{"discord", "google-chat", "gotify", "matrix", "mattermost", "ntfy", "slack", "teams", "telegram", "zulip"}; !slices.Equal(found, want) {
		t.Errorf("the document has %q, want %q", found, want)
	}
}

func FuzzCleaningLeavesNoSecret(f *testing.F) {
	f.Add("https://me:hunter22@h/x", "p%61ss", "say hunter22 and https://x/y")
	f.Fuzz(func(t *testing.T, url, password, text string) {
		if got := sink.CleanOfURL(url, text); len(got) > 200+len("…") || strings.Contains(got, "\n") {
			t.Errorf("%q", got)
		}
		if strings.Contains(sink.CleanOfURL("https://a:hunter22@h", text+" xhunter22y "+password), "hunter22") {
			t.Error("the password is there")
		}
	})
}
