// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestCheckNamesEveryMistakeByItsLine(t *testing.T) {
	file := written(t, "watch:\n  kind: [pods]\nsinks:\n- name: a\n  flie: {path: x}\n")
	w, said := testWorld(nil)
	if status := run(t.Context(), w, []string{"check", "-f", file}); status != 1 {
		t.Errorf("status %d", status)
	}
	for _, want := range []string{file + ":3:3: ", `did you mean "kinds"`, file + ":6:3: ", `did you mean "file"`} {
		if !strings.Contains(said.String(), want) {
			t.Errorf("no %q in\n%s", want, said)
		}
	}
}

func TestCheckSaysWhatAConfigurationMeans(t *testing.T) {
	w, said := testWorld(nil)
	if status := run(t.Context(), w, []string{"check", "-f", written(t, fileSink)}); status != 0 {
		t.Errorf("status %d", status)
	}
	if !strings.Contains(said.String(), "sink changes (file: ./changes.json) gets everything\n") {
		t.Error(said)
	}
}

func TestCheckReadsSecretsAndShowsNone(t *testing.T) {
	file := written(t, "sinks:\n- name: a\n  webhook:\n    urlFrom: {env: TEAM}\n")
	w, said := testWorld(nil)
	if status := run(t.Context(), w, []string{"check", "-f", file}); status != 1 || !strings.Contains(said.String(), file+":5:") || !strings.Contains(said.String(), "TEAM") {
		t.Errorf("status %d: %s", status, said)
	}
	w, said = testWorld(map[string]string{"TEAM": "https://discord.com/s3cret"})
	if status := run(t.Context(), w, []string{"check", "-f", file}); status != 0 || strings.Contains(said.String(), "s3cret") {
		t.Errorf("status %d: %s", status, said)
	}
}

func TestCheckSendsATestMessageIfItIsAskedTo(t *testing.T) {
	path := filepath.Join(t.TempDir(), "changes.json")
	file := written(t, "sinks:\n- name: changes\n  file: {path: "+path+"}\n- name: screen\n  terminal: {form: json}\n")
	w, said := testWorld(nil)
	if status := run(t.Context(), w, []string{"check", "-f", file}); status != 0 {
		t.Errorf("status %d: %s", status, said)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("it has written a file, and nobody asked it to send")
	}
	if status := run(t.Context(), w, []string{"check", "-f", file, "--send"}); status != 0 {
		t.Errorf("status %d: %s", status, said)
	}
	text, err := os.ReadFile(path)
	if err != nil || !strings.Contains(string(text), "This is a test message") || !strings.Contains(said.String(), "sink changes took the test message") {
		t.Errorf("%s, %v\n%s", text, err, said)
	}
}

func TestCheckSaysThatItNeedsAFile(t *testing.T) {
	w, said := testWorld(nil)
	if status := run(t.Context(), w, []string{"check"}); status != 1 || !strings.Contains(said.String(), "want the configuration, -f FILE") {
		t.Errorf("status %d: %s", status, said)
	}
	if status := run(t.Context(), w, []string{"check", "-f", "/does/not/exist"}); status != 1 {
		t.Errorf("status %d: %s", status, said)
	}
}
