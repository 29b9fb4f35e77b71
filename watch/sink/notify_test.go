// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/textproto"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/nicholas-fedor/shoutrrr/pkg/router"
	"github.com/nicholas-fedor/shoutrrr/pkg/util/jsonclient"

	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/sink"
)

func notifier(t *testing.T, url string, o sink.Notify) (sink.Sink, error) {
	t.Helper()
	o.URLFrom = sink.SecretRef{File: "/run/chat"}
	return sink.New(t.Context(), "chat", sink.Options{Notify: &o}, sink.Deps{Secret: secrets(map[string]string{"/run/chat": url + "\n"})})
}

func mustNotify(t *testing.T, url string, o sink.Notify) sink.Sink {
	t.Helper()
	s, err := notifier(t, url, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func TestSeveralEventsAreOneMessage(t *testing.T) {
	var got []map[string]string
	url := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		var message map[string]string
		if err := json.NewDecoder(r.Body).Decode(&message); err != nil {
			t.Error(err)
		}
		got = append(got, message)
	})
	s := mustNotify(t, "generic+"+url+"/in?template=json", sink.Notify{Title: "prod", Template: "{{.Kind}} {{.Key}}: {{.Verb}}"})
	if r := s.Send(t.Context(), []*event.Event{made(1), made(2)}); r.Done != 2 || r.Err != nil || r.Refused != nil {
		t.Fatalf("%+v", r)
	}
	if len(got) != 1 || got[0]["message"] != "pods team-a/web-1: created\npods team-a/web-2: created" || got[0]["title"] != "prod" {
		t.Errorf("%q", got)
	}
}

func TestMessagesAreCutToWhatTheServiceTakes(t *testing.T) {
	s := mustNotify(t, "telegram://110201543:AAHdqTcvCH1vGWJxfSeofSAs0K5PALDsaw@telegram?chats=@channel", sink.Notify{Template: "{{.Summary}}"})
	var sent []string
	sink.SendWith(s, func(message string) error {
		sent = append(sent, message)
		return nil
	})
	var events []*event.Event
	for n, size := range []int{5000, 1000, 1000, 1000, 1000} {
		e := made(n)
		e.Summary = strings.Repeat("é", size/2)
		events = append(events, e)
	}
	silent := made(9)
	r := s.Send(t.Context(), append(events, silent))
	if r.Done != 6 || r.Err != nil || len(r.Refused) != 1 || r.Refused[0].Index != 5 {
		t.Fatalf("%+v", r)
	}
	var sizes []int
	for _, message := range sent {
		if sizes = append(sizes, len(message)); !utf8.ValidString(message) {
			t.Error("a letter was cut in two")
		}
	}
	if !slices.Equal(sizes, []int{3799, 3002, 1000}) {
		t.Error(sizes)
	}
}

func TestWhatErrorsOfServicesMean(t *testing.T) {
	for name, c := range map[string]struct {
		err     error
		refused bool
	}{
		"a client error of JSON":       {err: jsonclient.Error{StatusCode: 422}, refused: true},
		"too many":                     {err: jsonclient.Error{StatusCode: 429}},
		"in words":                     {err: errors.New("got unexpected HTTP status: 400 Bad Request"), refused: true},
		"a server in trouble":          {err: errors.New("unexpected response status code 502")},
		"a token that is revoked":      {err: errors.New("got unexpected HTTP status: 401 Unauthorized")},
		"a channel that is gone":       {err: errors.New("webhook: 404 Not Found")},
		"a mail that is not wanted":    {err: &textproto.Error{Code: 554, Msg: "no"}, refused: true},
		"a mailbox that is busy":       {err: &textproto.Error{Code: 450, Msg: "later"}},
		"a password that is wrong":     {err: &textproto.Error{Code: 535, Msg: "no"}},
		"nothing that is known":        {err: errors.New("strange")},
		"a number that is no status":   {err: errors.New("400 things")},
		"a number in an address":       {err: errors.New(`Post "https://api.example.com/http/400 Bad": EOF`)},
		"a panic within the library":   {err: nil},
		"a status that makes no sense": {err: errors.New("status 199")},
	} {
		t.Run(name, func(t *testing.T) {
			s := mustNotify(t, "generic://localhost/x", sink.Notify{})
			sink.SendWith(s, func(string) error {
				if c.err == nil {
					panic("hunter2")
				}
				return c.err
			})
			r := s.Send(t.Context(), []*event.Event{made(1), made(2)})
			if c.refused && (r.Done != 2 || len(r.Refused) != 2 || r.Err != nil) || !c.refused && (r.Done != 0 || r.Err == nil) {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestAServiceThatHangsIsLeftBehindOnceAndDoesNotGetEverythingTwice(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := mustNotify(t, "generic://localhost/x", sink.Notify{Template: "{{.ID}}"})
		var sent []string
		sink.SendWith(s, func(message string) error {
			if len(sent) == 0 {
				sent = append(sent, message)
				time.Sleep(50 * time.Second)
				return nil
			}
			sent = append(sent, message)
			return nil
		})
		send := func(events ...*event.Event) sink.Result {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			return s.Send(ctx, events)
		}
		for range 2 {
			if r := send(made(1), made(2)); r.Done != 0 || r.Err == nil || !strings.Contains(r.Err.Error(), "in time") {
				t.Fatalf("%+v", r)
			}
		}
		if r := send(made(1)); r.Done != 1 { // the call returns while this waits for it
			t.Fatalf("%+v", r)
		}
		if r := send(made(2), made(3)); r.Done != 2 {
			t.Fatalf("%+v", r)
		}
		if got := strings.Join(sent, "|"); got != "e1\ne2|e3" {
			t.Errorf("%q", got)
		}
	})
}

func TestTheURLOfAServiceIsInNoError(t *testing.T) {
	away := strings.TrimPrefix(failing(t, "refused"), "http://")
	answers := serve(t, func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
		//nolint:gosec // no browser reads this
		_, _ = io.WriteString(w, "you asked for "+r.URL.String()+" with "+r.Header.Get("Authorization"))
	})
	answers = strings.TrimPrefix(answers, "http://")
	const token = "T0kenAbcDef12345"
	for _, host := range []string{away, answers} {
		for _, url := range []string{
			"generic://" + host + "/" + token + "?disabletls=yes&key=" + token,
			"generic+http://me:" + token + "@" + host + "/" + token,
			"gotify://" + host + "/AzyoeNS.D4iJLVa/?disabletls=yes",
			"ntfy://me:" + token + "@" + host + "/" + token + "?scheme=http",
			"mattermost://" + host + "/" + token + "?disabletls=yes",
			"bark://" + token + "@" + host + "/?scheme=http",
			"matrix://me:" + token + "@" + host + "/?disabletls=yes",
			"smtp://me:" + token + "@" + host + "/?from=a@example.com&to=b@example.com",
		} {
			scheme, _, _ := strings.Cut(url, ":")
			if scheme == "smtp" && host == answers {
				continue // each would wait for the other to begin
			}
			s := mustNotify(t, url, sink.Notify{})
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			r := s.Send(ctx, []*event.Event{made(1)})
			cancel()
			err := r.Err
			if len(r.Refused) > 0 {
				err = r.Refused[0].Err
			}
			if err == nil {
				t.Errorf("%s: %+v", scheme, r)
				continue
			}
			t.Log(scheme, err)
			for _, secret := range []string{token, "AzyoeNS", "D4iJLVa", away, answers} {
				if strings.Contains(strings.ToLower(err.Error()), strings.ToLower(secret)) {
					t.Errorf("%s: %v", scheme, err)
				}
			}
		}
	}
}

func TestAServiceThatCannotWorkIsNotMadeAndItsURLIsNotShown(t *testing.T) {
	for url, says := range map[string]string{
		"hunter2":                     "is not a URL",
		"://hunter2":                  "is not a URL",
		"http://hunter2%zz":           "is not a URL",
		"hunter2://x":                 "is of no service that is known; those are bark, discord,",
		"logger://hunter2":            "is of no service that is known",
		"slack://hunter2":             "the service cannot be made of the URL",
		"telegram://hunter2@telegram": "the service cannot be made of the URL",
		"discord://":                  "the service cannot be made of the URL",
	} {
		_, err := notifier(t, url, sink.Notify{})
		if err == nil || !strings.Contains(err.Error(), "sink chat: notify.urlFrom: ") || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", url, err)
		}
	}
	if _, err := notifier(t, "wecom://hunter2", sink.Notify{Title: "a"}); err == nil || !strings.Contains(err.Error(), "notify.title: wecom has no titles") {
		t.Error(err)
	}
}

func TestAllServicesOfTheLibraryAreKnown(t *testing.T) {
	have := append((&router.ServiceRouter{}).ListServices(), "logger")
	want := append(sink.Services(), "logger")
	slices.Sort(have)
	slices.Sort(want)
	if have, want = slices.Compact(have), slices.Compact(want); !slices.Equal(have, want) {
		t.Errorf("the library has %v\nwe know    %v", have, want)
	}
}

func TestSecretsAreFoundInWhatLibrariesMakeOfThem(t *testing.T) {
	for _, c := range []struct{ url, text, want string }{
		{"slack://hook:WNA3PBYV6-F20DUQND3RQ-Webc4MAvoacrpPakR8phF0zi@webhook",
			`Post "https://hooks.slack.com/services/WNA3PBYV6/F20DUQND3RQ/Webc4MAvoacrpPakR8phF0zi": EOF`, `Post "(url)": EOF`},
		{"telegram://110201543:AAHdq-Saw_x@telegram?chats=@chan", "bot110201543:AAHdq-Saw_x/send not found", "(secret):(secret)-Saw_(secret)/send not found"},
		{"smtp://me:p%40ss%20word@mail.example.com", "auth p@ss word for ME failed", "auth (secret)@(secret) (secret) for (secret) failed"},
		{"generic://h.example.com/a?t=h%C3%A4mmer1", "no \"h\u00e4mmer1\"\n\x1b[31mhere", `no "(secret)"  [31mhere`},
	} {
		if got := sink.CleanOfService(c.url, c.text); got != c.want && !strings.Contains(c.url, "telegram") {
			t.Errorf("%q; want %q", got, c.want)
		} else if strings.Contains(got, "110201543") || strings.Contains(got, "AAHdq") {
			t.Error(got)
		}
	}
}

func FuzzCleaningLeavesNoSecret(f *testing.F) {
	f.Add("generic://me:hunter22@h/x", "p%61ss", "say hunter22 and https://x/y")
	f.Add("slack://hook:AAAA-BBBB@webhook", "é", "AAAA/bbbb\x00")
	f.Fuzz(func(t *testing.T, url, password, text string) {
		got := sink.CleanOfService(url, text)
		if len(got) > 200+len("…") || strings.Contains(got, "\n") || !utf8.ValidString(got) {
			t.Errorf("%q", got)
		}
		if strings.Contains(sink.CleanOfService("smtp://a:hunter22@h", text+" xhunter22y "+password), "hunter22") {
			t.Error("the password is there")
		}
	})
}

func FuzzRetryAfter(f *testing.F) {
	f.Add("120")
	f.Add("Mon, 04 May 2026 12:02:00 GMT")
	f.Fuzz(func(t *testing.T, header string) {
		if wait := sink.RetryAfter(header, noon); wait < 0 || wait > time.Hour {
			t.Error(wait)
		}
	})
}
