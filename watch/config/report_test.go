// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"testing"
)

func TestAReportSaysWhatTheFileMeans(t *testing.T) {
	text, err := os.ReadFile("testdata/cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c, err := Parse(text, "cluster.yaml")
	if err != nil {
		t.Fatal(err)
	}
	report := Check(c, func(name string) ([]byte, error) {
		switch {
		case strings.HasSuffix(name, "/slack-url"):
			return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
		case strings.HasSuffix(name, "/token"):
			return []byte(" \n"), nil
		}
		return []byte("SECRET"), nil
	}, func(string) (string, bool) { return "", false })
	lines := strings.Join(report.Lines(), "\n") + "\n"
	golden(t, "testdata/report.txt", []byte(lines))
	if strings.Contains(lines, "SECRET") {
		t.Error("a secret is in the report")
	}
	var found *Finding
	if len(report.Errors) != 3 || !errors.As(report.Errors[0], &found) || found.Line == 0 {
		t.Errorf("%v", report.Errors)
	}
	if errs := Check(c, nil, nil).Errors; len(errs) > 0 {
		t.Errorf("nothing is to be read, and yet %v", errs)
	}
}

func TestAnErrorOfAReaderMayHoldWhatItRead(t *testing.T) {
	c := parse(t, "sinks: [{name: a, webhook: {urlFrom: {file: /x}}}]")
	report := Check(c, func(string) ([]byte, error) { return nil, errors.New("SECRET") }, nil)
	if len(report.Errors) != 1 || strings.Contains(report.Errors[0].Error(), "SECRET") {
		t.Error(report.Errors)
	}
}

func TestAReportOfLittle(t *testing.T) {
	for _, test := range []struct{ name, text, want string }{
		{"nothing", "", `watches pods, since no kinds are named, in all namespaces
tells of creations, deletions, trouble, and changes of content, metadata
has no cursor: what happens while it is not running is not told`},
		{"most", "watch: {all: true, excludeNamespaces: [x], labels: a=b, fields: metadata.name=c, window: 1s, initial: true, where: 'true'}\nhide: ['pods:spec']\nsinks: [{name: w, webhook: {url: 'https://me:SECRET@h/SECRET'}}, {name: t, terminal: }]", `warning: w.yaml:4:34: sinks[0].webhook.url: has a name and password in it, for all who can read this file; put the URL into a file of its own, and name that under urlFrom
watches every kind that can be watched, those that come later too, in all namespaces but x, with labels a=b, with fields metadata.name=c
tells of creations, deletions, trouble, and changes of content, metadata, where true; at the start of what is there
gathers changes of an object for 1s to one
shows no values of secrets, nor of pods:spec
has no cursor: what happens while it is not running is not told
sink w (webhook: https://h) gets everything
sink t (terminal) gets everything`},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := strings.Join(Check(parse(t, test.text), nil, nil).Lines(), "\n"); got != test.want {
				t.Errorf("got\n%s\nwant\n%s", got, test.want)
			}
		})
	}
}
