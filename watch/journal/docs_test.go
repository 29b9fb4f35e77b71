// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/setpoint-io/setpoint/internal/documenttest"
)

// TestTheMessageInTheDocumentIsWhatIsWritten compares the names and numbers of the message with those
// of this package.
func TestTheMessageInTheDocumentIsWhatIsWritten(t *testing.T) {
	verbs := map[string]verb{
		"NONE": 0, "SEE_OBJECT": seeObject, "FORGET_OBJECT": forgetObject, "SET_VERSION": setVersion, "DROP_SELECTION": dropSelection,
		"ADD_EVENT": addEvent, "ACK_EVENTS": ackEvents, "DISCARD_EVENTS": discardEvents, "COUNT_DROPPED": countDropped,
		"SET_NEXT": setNext, "REMOVE_SINK": removeSink, "SET_DICTIONARY": setDictionary,
	}
	fields := map[string]protowire.Number{
		"repeated Change changes": fieldChange,
		"Verb verb":               fieldVerb, "string name": fieldName, "string namespace": fieldNamespace, "string object": fieldObject,
		"string uid": fieldUID, "string version": fieldVersion, "bytes digest": fieldDigest, "repeated uint64 seq": fieldSeq,
		"uint64 count": fieldCount, "string id": fieldID, "int64 time": fieldTime, "bytes data": fieldData, "bytes state": fieldState,
	}
	want := map[string]int{}
	for name, number := range verbs {
		want[name] = int(number)
	}
	for name, number := range fields {
		want[name] = int(number)
	}
	line := regexp.MustCompile(`([\w ]+\w) = (\d+)(?: \[packed = false\])?;`)
	for _, b := range documenttest.Blocks(t) {
		found := line.FindAllStringSubmatch(b.Text, -1)
		for _, m := range found {
			name := strings.TrimSpace(m[1])
			if number, err := strconv.Atoi(m[2]); err != nil || want[name] != number || name != "NONE" && number == 0 {
				t.Errorf("%s: %s has the number %s, want %d", b, name, m[2], want[name])
			}
		}
		if len(found) != len(want) {
			t.Errorf("%s has %d verbs and fields, want %d", b, len(found), len(want))
		}
	}
}

// TestTheFirstCommitIsReadAsTheDocumentSays runs the commands of the document. In the place of protoc,
// which decodes any message, stands a program that keeps what it is given.
func TestTheFirstCommitIsReadAsTheDocumentSays(t *testing.T) {
	for _, program := range []string{"sh", "tail", "head", "od", "tr"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip(err)
		}
	}
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "protoc"), []byte("#!/bin/sh\ncat >body\n"), 0o700); err != nil { //nolint:gosec // it is to be run
		t.Fatal(err)
	}
	j := reopen(t, filepath.Join(dir, "FILE"), options())
	commit(t, j, func(b *Batch) { b.Version("pods", "4711") })
	commit(t, j, func(b *Batch) { b.Version("pods", "4712") })
	closeJournal(t, j)
	for _, b := range documenttest.Blocks(t) {
		shell := exec.CommandContext(t.Context(), "sh", "-e", "-c", b.Text)
		shell.Dir = dir
		shell.Env = append(os.Environ(), "PATH="+dir+string(os.PathListSeparator)+os.Getenv("PATH"))
		if out, err := shell.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", b, err, out)
		}
		body, err := os.ReadFile(filepath.Join(dir, "body"))
		if err != nil {
			t.Fatal(err)
		}
		var first change
		field, kind, n := protowire.ConsumeTag(body)
		if n < 0 || field != fieldChange || kind != protowire.BytesType {
			t.Fatalf("%s: the commands read %q, want a commit", b, body)
		}
		message, m := protowire.ConsumeBytes(body[n:])
		if err := first.decode(message); err != nil || n+m != len(body) {
			t.Fatalf("%s: the commands read %q, want one commit (%v)", b, body, err)
		}
		if got, want := fmt.Sprintf("%d %s %s", first.verb, first.name, first.version), fmt.Sprintf("%d pods 4711", setVersion); got != want {
			t.Errorf("%s: the first commit has %s, want %s", b, got, want)
		}
		if bytes.Contains(body, []byte("4712")) {
			t.Errorf("%s: the commands read more than the first commit", b)
		}
	}
}
