// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package sink_test

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/setpoint-io/setpoint/watch/event"
	"github.com/setpoint-io/setpoint/watch/sink"
)

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

// secrets answers for references by the name of the variable or the file.
func secrets(values map[string]string) func(sink.SecretRef) (string, error) {
	return func(ref sink.SecretRef) (string, error) {
		value, ok := values[ref.Env+ref.File]
		if !ok {
			return "", errors.New("is not there")
		}
		return value, nil
	}
}

func hook(t *testing.T, o sink.Webhook, values map[string]string) sink.Sink {
	t.Helper()
	s, err := sink.New("hook", sink.Options{Webhook: &o},
		sink.Deps{Secret: secrets(values)}.With(func() time.Time { return noon }, nil, nil))
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

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(server.Close)
	return server.URL
}

func TestAWebhookGetsASignedCloudEvent(t *testing.T) {
	var got map[string]any
	var request *http.Request
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		request = r
		if err := sink.Verify([]byte("key"), r.Header.Get(sink.SignatureHeader), body, noon.Add(time.Minute), 5*time.Minute); err != nil {
			t.Error(err)
		}
		if err := sink.Verify([]byte("other"), r.Header.Get(sink.SignatureHeader), body, noon, time.Minute); !errors.Is(err, sink.ErrSignature) {
			t.Error(err)
		}
		if err := json.Unmarshal(body, &got); err != nil {
			t.Error(err)
		}
		w.WriteHeader(http.StatusAccepted)
	})
	s := hook(t, sink.Webhook{
		URL: sink.NewSecret(strings.Replace(url, "//", "//me:pass@", 1) + "/in?token=abc"), Source: "prod", SigningKey: sink.SecretRef{File: "/key"},
		Headers: []sink.Header{
			{Name: "X-Tenant", Value: sink.NewSecret("a")},
			{Name: "Authorization-Key", From: sink.SecretRef{Env: "TOKEN"}},
		},
	}, map[string]string{"/key": "key\n", "TOKEN": "s3cr3t\r\n"})
	if r := s.Send(t.Context(), []*event.Event{made(1)}); r.Err != nil || r.Done != 1 || r.Refused != nil {
		t.Fatalf("%+v", r)
	}
	if got["id"] != "e1" || got["source"] != "prod" || got["type"] != "io.setpoint.watch.created" || got["specversion"] != "1.0" {
		t.Error(got)
	}
	user, password, _ := request.BasicAuth()
	if h := request.Header; request.Method != http.MethodPost || !strings.HasPrefix(h.Get("Content-Type"), "application/cloudevents+json") ||
		h.Get("X-Tenant") != "a" || h.Get("Authorization-Key") != "s3cr3t" || user+password != "mepass" || request.URL.RawQuery != "token=abc" {
		t.Errorf("%+v", request)
	}
	if err := sink.SendTest(t.Context(), s); err != nil || got["subject"] != "/testmessages.setpoint.io/setpoint-watch-check" {
		t.Error(err, got)
	}
}

func TestWhatAnswersOfAWebhookMean(t *testing.T) {
	for name, c := range map[string]struct {
		code    int
		header  string
		body    string
		refused bool
		wait    time.Duration
		says    string
	}{
		"no content":                              {code: 204},
		"a server in trouble":                     {code: 500, body: "oh", says: "the receiver answered 500 Internal Server Error: oh"},
		"one that is overloaded":                  {code: 503, header: "7", wait: 7 * time.Second, says: "503 Service Unavailable"},
		"too many, until a time":                  {code: 429, header: "Mon, 04 May 2026 12:02:00 GMT", wait: 2 * time.Minute, says: "429 Too Many Requests"},
		"too many, until the end of time":         {code: 429, header: "99999999999999999999", says: "429"},
		"too many, for years":                     {code: 429, header: "999999999", wait: time.Hour, says: "429"},
		"a time that is over":                     {code: 429, header: "Mon, 04 May 2020 12:02:00 GMT", says: "429"},
		"a request that took too long":            {code: 408, says: "408"},
		"what cannot be read":                     {code: 400, body: "bad\nthing\x00", refused: true, says: "400 Bad Request: bad thing"},
		"no right":                                {code: 401, refused: true, says: "401 Unauthorized"},
		"gone":                                    {code: 410, refused: true, says: "410 Gone"},
		"a status that nobody knows":              {code: 499, refused: true, says: "answered 499"},
		"a long answer":                           {code: 404, body: strings.Repeat("é ", 5000), refused: true, says: "é…"},
		"an answer that breaks off in the secret": {code: 403, body: strings.Repeat(" ", 790) + `"/hooks/T0KEN12345"`, refused: true, says: `"/hooks/`},
		"an answer that repeats the secret":       {code: 403, body: `{"sent":{"Api-Key":"s3cr3t-Key!"},"path":"/hooks/T0KEN12345"}`, refused: true, says: `"/hooks/(secret)"`},
	} {
		t.Run(name, func(t *testing.T) {
			url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After", c.header)
				w.WriteHeader(c.code)
				_, _ = io.WriteString(w, c.body)
			})
			s := hook(t, sink.Webhook{
				URL:     sink.NewSecret(url + "/hooks/T0KEN12345?k=hunter2"),
				Headers: []sink.Header{{Name: "Api-Key", Value: sink.NewSecret("s3cr3t-Key!")}},
			}, nil)
			r := s.Send(t.Context(), []*event.Event{made(1), made(2)})
			err := r.Err
			done := 0
			if c.says == "" || c.refused {
				done = 2
			}
			if c.refused {
				if len(r.Refused) != 2 || r.Refused[1].Index != 1 || r.Err != nil {
					t.Fatalf("%+v", r)
				}
				err = r.Refused[0].Err
			}
			if r.Done != done || r.Wait != c.wait || (err == nil) != (c.says == "") {
				t.Fatalf("%+v", r)
			}
			if err == nil {
				return
			}
			if text := err.Error(); !strings.Contains(text, c.says) || len(text) > 300 || strings.ContainsAny(text, "\n\x00") ||
				strings.Contains(text, "s3cr3t") || strings.Contains(text, "T0KEN") || strings.Contains(text, "hunter2") {
				t.Error(text)
			}
		})
	}
}

// failing returns a URL at which each request fails in a way of its own.
func failing(t *testing.T, how string) string {
	t.Helper()
	switch how {
	case "refused":
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		return "http://" + l.Addr().String()
	case "slow":
		stop := make(chan struct{})
		url := serve(t, func(_ http.ResponseWriter, r *http.Request) {
			select {
			case <-stop:
			case <-r.Context().Done():
			}
		})
		t.Cleanup(func() { close(stop) })
		return url
	case "tls":
		server := httptest.NewUnstartedServer(nil)
		server.Config.ErrorLog = log.New(io.Discard, "", 0) // says that the client hung up
		server.StartTLS()
		t.Cleanup(server.Close)
		return server.URL
	}
	// An answer that breaks off within its headers.
	return serve(t, func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n")
		_ = conn.Close()
	})
}

func TestWithoutAnAnswerAWebhookIsTriedAgainAndTheURLIsNotInTheError(t *testing.T) {
	for how, says := range map[string]string{
		"refused": "connection refused", "slow": "context deadline exceeded", "tls": "certificate", "truncated": "unexpected EOF",
	} {
		t.Run(how, func(t *testing.T) {
			url := strings.Replace(failing(t, how), "//", "//me:pa55@", 1) + "/T0KEN12345?hunter2"
			s := hook(t, sink.Webhook{URL: sink.NewSecret(url)}, nil)
			wait := 10 * time.Second
			if how == "slow" {
				wait = 50 * time.Millisecond
			}
			ctx, cancel := context.WithTimeout(t.Context(), wait)
			defer cancel()
			r := s.Send(ctx, []*event.Event{made(1)})
			if r.Done != 0 || r.Err == nil || !strings.Contains(r.Err.Error(), says) {
				t.Fatalf("%+v", r)
			}
			for _, secret := range []string{"pa55", "T0KEN", "hunter2", "://"} {
				if strings.Contains(fmt.Sprintf("%+v %#v", r.Err, r.Err), secret) {
					t.Errorf("%s is in %v", secret, r.Err)
				}
			}
		})
	}
}

func TestAnAnswerThatBreaksOffAfterItsStatusIsAnAnswer(t *testing.T) {
	for code, refused := range map[int]int{200: 0, 400: 1} {
		url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = fmt.Fprintf(conn, "HTTP/1.1 %d X\r\nContent-Length: 500\r\n\r\nonly so mu", code)
			_ = conn.Close()
		})
		r := hook(t, sink.Webhook{URL: sink.NewSecret(url)}, nil).Send(t.Context(), []*event.Event{made(1)})
		if r.Done != 1 || len(r.Refused) != refused || r.Err != nil {
			t.Errorf("%d: %+v", code, r)
		}
	}
}

func TestACertificateIsCheckedAgainstTheFileGiven(t *testing.T) {
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(server.Close)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	s := hook(t, sink.Webhook{URL: sink.NewSecret(server.URL), CAFile: ca}, nil)
	if r := s.Send(t.Context(), []*event.Event{made(1)}); r.Err != nil || r.Done != 1 {
		t.Errorf("%+v", r)
	}
}

func TestRedirectsAreFollowedWithinTheServerAndWithTheBody(t *testing.T) {
	strange := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("the other server was asked") })
	for name, c := range map[string]struct {
		code int
		to   string
		done int
	}{
		"to another path":        {code: 307, to: "/other", done: 1},
		"for ever, to a path":    {code: 308, to: "/other", done: 1},
		"to another server":      {code: 307, to: strange},
		"as a page to look at":   {code: 302, to: "/other"},
		"see other":              {code: 303, to: "/other"},
		"in a circle":            {code: 307, to: "/"},
		"to a place without URL": {code: 307, to: "http://%zz"},
	} {
		t.Run(name, func(t *testing.T) {
			url := serve(t, func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if r.URL.Path == "/other" {
					if r.Method != http.MethodPost || len(body) == 0 {
						t.Error("the event did not come along")
					}
					return
				}
				w.Header().Set("Location", c.to)
				w.WriteHeader(c.code)
			})
			r := hook(t, sink.Webhook{URL: sink.NewSecret(url + "/")}, nil).Send(t.Context(), []*event.Event{made(1)})
			if r.Done != c.done || (r.Err == nil) != (c.done == 1) || r.Refused != nil {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestABatchIsOneRequestAndOneBadEventDoesNotSpoilIt(t *testing.T) {
	var sizes []int
	var taken []string
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		var events []struct {
			ID string `json:"id"`
		}
		if err := json.NewDecoder(r.Body).Decode(&events); err != nil || !strings.HasPrefix(r.Header.Get("Content-Type"), "application/cloudevents-batch+json") {
			t.Error(err, r.Header)
		}
		sizes = append(sizes, len(events))
		for _, e := range events {
			if e.ID == "e5" {
				http.Error(w, "e5 is odd", http.StatusUnprocessableEntity)
				return
			}
		}
		for _, e := range events {
			taken = append(taken, e.ID)
		}
	})
	s := hook(t, sink.Webhook{URL: sink.NewSecret(url), Mode: sink.ModeBatch}, nil)
	var events []*event.Event
	for n := range 8 {
		events = append(events, made(n))
	}
	r := s.Send(t.Context(), events)
	if r.Done != 8 || r.Err != nil || len(r.Refused) != 1 || r.Refused[0].Index != 5 {
		t.Errorf("%+v", r)
	}
	if got := strings.Join(taken, " "); got != "e0 e1 e2 e3 e4 e6 e7" {
		t.Error(got, sizes)
	}
	unsendable := made(9)
	unsendable.Fields = []event.Field{{Path: "x", To: func() {}}}
	r = s.Send(t.Context(), []*event.Event{made(0), unsendable, made(1)})
	if r.Done != 3 || len(r.Refused) != 1 || r.Refused[0].Index != 1 || r.Err != nil {
		t.Errorf("%+v", r)
	}
}

func TestAWebhookThatCannotWorkIsNotMade(t *testing.T) {
	ca := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(ca, []byte("none"), 0o600); err != nil {
		t.Fatal(err)
	}
	values := map[string]string{"EMPTY": " \n", "URL": "ftp://hunter2", "LINES": "a\nb"}
	for says, o := range map[string]sink.Webhook{
		"webhook.urlFrom: reading the environment variable NONE: is not there": {URLFrom: sink.SecretRef{Env: "NONE"}},
		"webhook.urlFrom: does not begin with http:// or https://":             {URLFrom: sink.SecretRef{Env: "URL"}},
		"webhook.url: is not a URL":                                            {URL: sink.NewSecret("http://me:hunter2@[")},
		"webhook.signingKey: the environment variable EMPTY is empty":          {URL: sink.NewSecret("http://x"), SigningKey: sink.SecretRef{Env: "EMPTY"}},
		"webhook.caFile: " + ca + " has no certificate in PEM":                 {URL: sink.NewSecret("http://x"), CAFile: ca},
		"webhook.headers[0].from: has a character":                             {URL: sink.NewSecret("http://x"), Headers: []sink.Header{{Name: "A", From: sink.SecretRef{Env: "LINES"}}}},
	} {
		_, err := sink.New("hook", sink.Options{Webhook: &o}, sink.Deps{Secret: secrets(values)})
		if err == nil || !strings.Contains(err.Error(), "sink hook: "+says) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%v; want %s", err, says)
		}
	}
}

func FuzzVerify(f *testing.F) {
	f.Add(sink.Sign([]byte("key"), noon, []byte("body")), []byte("body"))
	f.Add("t=1,v1=zz", []byte(nil))
	f.Add("t=-9223372036854775808,v1=00", []byte("x"))
	f.Fuzz(func(t *testing.T, header string, body []byte) {
		if sink.Verify([]byte("key"), header, body, noon, time.Minute) == nil && !strings.Contains(header, "v1=") {
			t.Error("nothing was signed")
		}
		if err := sink.Verify([]byte("key"), sink.Sign([]byte("key"), noon, body), body, noon, time.Minute); err != nil {
			t.Error(err)
		}
	})
}
