// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/setpoint-io/setpoint/internal/documenttest"
)

// evening is where the user is.
var evening = time.FixedZone("evening", 8*3600)

// wantLines compares what was written with lines, each without its time.
func wantLines(t *testing.T, out *bytes.Buffer, want ...string) {
	t.Helper()
	got := strings.Split(strings.TrimSuffix(out.String(), "\n"), "\n")
	for i, line := range got {
		if _, err := time.Parse("15:04:05", line[:min(len(line), 8)]); err != nil {
			t.Errorf("line %d, %q, does not begin with a time", i, line)
			continue
		}
		got[i] = line[9:]
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("written:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestWarningsForPeopleAreGroupedAndTheirEndIsShown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := slog.New(newPeople(&out, slog.LevelInfo, evening, false))
		refused := func(kind string) error {
			return fmt.Errorf("listing: %s is forbidden: User \"ann\" cannot list resource %q", kind, kind)
		}
		for _, kind := range []string{"pods", "secrets", "configmaps", "services", "nodes", "leases", "events", "jobs", "endpoints", "pods", "roles"} {
			log.Warn("cannot watch; trying again until it works", "kind", kind, "reason", "forbidden", "error", refused(kind))
		}
		log.Warn("cannot watch; trying again until it works", "kind", "widgets.example.com", "reason", "the server answers 500", "error", errors.New("conversion webhook failed"))
		log.Info("watching: what was there has been seen", "followed", 3)
		time.Sleep(gatherFor)
		synctest.Wait()
		wantLines(
			t, &out,
			"  watching: what was there has been seen (followed 3)",
			`! cannot watch; trying again until it works: configmaps, endpoints, events, jobs, 6 more (forbidden): for example listing: pods is forbidden: User "ann" cannot list resource "pods"`,
			"! cannot watch; trying again until it works: widgets.example.com (the server answers 500): conversion webhook failed",
		)
		out.Reset()
		log.Warn("watching again", "kind", "pods", "after", "1.2s")
		log.Warn("watching again", "kind", "secrets", "after", "1.3s")
		time.Sleep(gatherFor)
		synctest.Wait()
		wantLines(t, &out, "✓ watching again: pods, secrets")
	})
}

func TestTheLinesInTheDocumentAreWrittenForPeople(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := slog.New(newPeople(&out, slog.LevelInfo, evening, false))
		for _, kind := range []string{"pods", "secrets", "configmaps"} {
			log.Warn("cannot watch; trying again until it works", "kind", kind, "reason", "forbidden",
				"error", fmt.Errorf("listing by watch: %s is forbidden", kind))
		}
		time.Sleep(gatherFor)
		synctest.Wait()
		for _, kind := range []string{"pods", "secrets", "configmaps"} {
			log.Warn("watching again", "kind", kind)
		}
		time.Sleep(gatherFor)
		synctest.Wait()
		for _, b := range documenttest.Blocks(t) {
			if !documenttest.Same(b.Text, out.String()) {
				t.Errorf("%s shows\n%s\nthe lines are\n%s", b, b.Text, &out)
			}
		}
	})
}

func TestLinesForPeople(t *testing.T) {
	at := time.Date(2026, 3, 1, 17, 4, 5, 0, time.UTC)
	for want, r := range map[string]func(*slog.Logger){
		"01:04:05 ✗ no longer leading (renewed by another)":                func(l *slog.Logger) { l.Error("no longer leading", "reason", "renewed by another") },
		"01:04:05 ! a namespace does not exist: shopp (did you mean shop)": func(l *slog.Logger) { l.Warn("a namespace does not exist", "namespace", "shopp", "didYouMean", "shop") },
		"01:04:05 ! closing the sink: chat (attempt 3, request.path /x): broken": func(l *slog.Logger) {
			l.With("sink", "chat").WithGroup("").With("attempt", 3).Warn("closing the sink", slog.Group("request", "path", "/x"), "error", errors.New("broken"))
		},
		"01:04:05   stopping (from client-go, a.b 1)":    func(l *slog.Logger) { l.With("from", "client-go").WithGroup("a").Info("stopping", "b", 1) },
		`01:04:05 ! evil\x1b[2J: pods: two lines \u202e`: func(l *slog.Logger) { l.Warn("evil\x1b[2J", "kind", "pods", "error", errors.New("two\nlines \u202e")) },
		"01:04:05 ! nothing more":                        func(l *slog.Logger) { l.With(slog.Attr{}).Warn("nothing more", "namespace", "") },
		"01:04:05 ! there is no object of this name: pods (namespace shop, name web)": func(l *slog.Logger) {
			l.Warn("there is no object of this name", "kind", "pods", "namespace", "shop", "name", "web")
		},
		"01:04:05 ✓ the server answers (server https://127.0.0.1:6443)": func(l *slog.Logger) { l.Warn("the server answers", "server", "https://127.0.0.1:6443") },
	} {
		var out bytes.Buffer
		p := newPeople(&out, slog.LevelInfo, evening, false)
		r(slog.New(at0{p, at}))
		p.flush()
		if got := strings.TrimSuffix(out.String(), "\n"); got != want {
			t.Errorf("written %q, want %q", got, want)
		}
	}
}

// at0 gives each record a time.
type at0 struct {
	slog.Handler
	at time.Time
}

func (h at0) Handle(ctx context.Context, r slog.Record) error {
	r.Time = h.at
	return h.Handler.Handle(ctx, r)
}

func (h at0) WithAttrs(a []slog.Attr) slog.Handler { return at0{h.Handler.WithAttrs(a), h.at} }
func (h at0) WithGroup(name string) slog.Handler   { return at0{h.Handler.WithGroup(name), h.at} }

func TestALogForPeopleIsSafeForConcurrentUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		p := newPeople(&out, slog.LevelInfo, time.UTC, true)
		log := slog.New(p)
		var all sync.WaitGroup
		for i := range 8 {
			all.Go(func() {
				for n := range 50 {
					log.With("kind", strconv.Itoa(n)).Warn("again")
					log.Info("meanwhile", "i", i)
				}
			})
		}
		all.Wait()
		p.flush()
		if n := strings.Count(out.String(), "\n"); n != 401 {
			t.Errorf("%d lines, want 400 and one for all warnings", n)
		}
		if !strings.HasPrefix(out.String(), "\r\x1b[K") {
			t.Error("a line on a terminal does not clear what stands there")
		}
	})
}

// On a terminal the commands for people log lines for people; everywhere else it is as before.
func TestTheFormatOfTheLogDependsOnTheReader(t *testing.T) {
	for _, test := range []struct {
		terminal, forPeople bool
		flag, want          string
	}{
		{true, true, "auto", "! cannot watch: pods"},
		{true, false, "auto", "level=WARN msg=\"cannot watch\" kind=pods"},
		{false, true, "auto", `"level":"WARN","msg":"cannot watch","kind":"pods"`},
		{true, true, "text", "level=WARN"},
		{true, true, "json", `"level":"WARN"`},
		{false, false, "people", "! cannot watch: pods"},
	} {
		var out bytes.Buffer
		w := &World{Stderr: &out, Stdout: &out, Terminal: test.terminal}
		l := Logging{ForPeople: test.forPeople}
		c := &cobra.Command{RunE: func(*cobra.Command, []string) error {
			log, err := l.Logger(w, slog.LevelWarn)
			if err == nil {
				log.Warn("cannot watch", "kind", "pods") // the command ends before others could come
			}
			return err
		}}
		l.Flags(c.Flags(), c)
		if status := w.Run(t.Context(), c, "test", []string{"--log-format", test.flag}); status != 0 || !strings.Contains(out.String(), test.want) {
			t.Errorf("%+v: status %d, written %q", test, status, &out)
		}
	}
	var help pflag.FlagSet
	(&Logging{ForPeople: true}).Flags(&help, &cobra.Command{})
	if usage := help.Lookup("log-format").Usage; !strings.Contains(usage, "auto: people on a terminal") {
		t.Errorf("the help is %q", usage)
	}
}

// A message that no package logs at the level of warnings would never have its mark.
func TestEachRecoveryIsLoggedAsAWarning(t *testing.T) {
	missing := map[string]bool{}
	for message := range recoveries {
		missing[message] = true
	}
	logged := regexp.MustCompile(`\.(?:Warn|Error|Log)\((?:ctx, level, )?("[^"]+")`)
	err := filepath.WalkDir("../..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path) //nolint:gosec // the paths are those of the repository
		for _, m := range logged.FindAllSubmatch(text, -1) {
			if message, unquoted := strconv.Unquote(string(m[1])); unquoted == nil {
				delete(missing, message)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for message := range missing {
		t.Errorf("nothing logs %q", message)
	}
}
