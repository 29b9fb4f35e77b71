// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestMain lets the test's binary be the process that measures a side, as the
// command's is.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == sideCase {
		main()
		return
	}
	os.Exit(m.Run())
}

func TestASideEndsWithTheProcessThatStartedIt(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	asked := make(chan struct{}, 100)
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked <- struct{}{}; panic(http.ErrAbortHandler) }))
	defer server.Close()
	for _, side := range []string{"setpoint", "client-go"} {
		command := exec.CommandContext(t.Context(), self, sideCase, fmt.Sprintf(`{"Case":"relist","Side":%q,"Kind":"pods","Server":%q,"Objects":1}`, side, server.URL))
		lifeline, err := command.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := command.Start(); err != nil {
			t.Fatal(err)
		}
		<-asked // it works
		if err := lifeline.Close(); err != nil {
			t.Error(err)
		}
		if err := command.Wait(); err == nil || command.ProcessState.ExitCode() != 1 {
			t.Errorf("%s ended with %v", side, err)
		}
	}
}

func TestCasesMeasureBothSides(t *testing.T) {
	for _, c := range []struct {
		args  []string
		lines []string
	}{
		{[]string{"cache", "--objects", "200", "--events", "400", "--turns", "1"}, []string{
			"pods-heap-per-object ", "pods-heap-per-object-after-changes ", "pods-heap-vs-transform ", "million-pods-heap-projected ",
			"pods-sync-cpu-per-object ", "pods-events-per-second-metadata ", "pods-events-per-second-decoded ", "pods-get-warm ",
			"pods-get-cold ", "pods-get-cold-cpu ", "pods-list-namespace-per-object ", "pods-list-selected ", "tiny-heap-of-100-pods ",
			"nodes-heap-per-object ", "configmaps-heap-per-object ", "certificates-heap-per-object ", "random-heap-per-object ",
		}},
		{[]string{"readers", "--objects", "200", "--span", "200ms"}, []string{
			"writes-alone ", "writes-10-listing ", "writes-10-listing-vs-indexer ", "lag-10-listing ", "writes-10-listing-vs-spinning ",
			"list-pods-metadata-selected-again ", "list-pods-few-selected-again ", "list-pods-namespace-first ", "list-pods-selected-again ",
			"list-nodes-all-first ", "list-nodes-all-again ",
		}},
		{[]string{"relist", "--objects", "200"}, []string{
			"relist-streamed-heap-over-steady ", "relist-streamed-live-over-steady ", "relist-listed-heap-over-steady ",
		}},
	} {
		t.Run(c.args[0], func(t *testing.T) {
			var out strings.Builder
			if err := run(t.Context(), c.args, &out); err != nil {
				t.Fatal(err)
			}
			for _, name := range c.lines {
				_, line, found := strings.Cut(out.String(), "\n"+name)
				line, _, _ = strings.Cut(line, "\n")
				if !found || !strings.Contains(line, "setpoint=") || strings.Contains(line, "peer=none") {
					t.Errorf("%s: %q is no measure of both sides, in\n%s", name, line, out.String())
				}
			}
		})
	}
}

func TestMeasuringSaysWhatIsWrongWithItsArguments(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"cache", "--kinds", "pods,gadgets"}, `there is no kind "gadgets" in the corpus; it has pods, nodes, configmaps, certificates, random`},
		{[]string{"cache", "--turns", "0"}, "--turns 0"},
		{[]string{"relist", "--changed", "101"}, "--changed 101"},
		{[]string{"readers", "--span", "0s"}, "--span 0s"},
		{[]string{sideCase, `{"Case":"cache","Side":"setpoint","Kind":"gadgets"}`}, `there is no kind "gadgets"`},
		{[]string{sideCase, `{"Case":"nothing"}`}, `there is no case "nothing"`},
	} {
		var out strings.Builder
		if err := run(t.Context(), c.args, &out); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v, want one with %q", c.args, err, c.want)
		}
	}
}

func TestSideThatFailsIsReportedWithItsWords(t *testing.T) {
	_, err := (&sideSpec{Case: "cache", Side: setpointSide, Kind: "pods", Tape: t.TempDir() + "/none"}).run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "loading pods") {
		t.Errorf("error %v, want the reason that the process gave", err)
	}
}
