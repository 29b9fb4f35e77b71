// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/manager/serving"
)

// Each path that the index lists is there, and profiles are listed where they are served.
func TestTheIndexListsThePaths(t *testing.T) {
	for _, profiling := range []bool{false, true} {
		l := listen(t)
		run(t, broken(t, somePods(t).Config(), manager.Serve(l, serving.Options{Plain: true, Profiling: profiling})))
		base := "http://" + l.Addr().String()
		code, text := ask(t, base+"/", "")
		lines := strings.Split(strings.TrimSpace(text), "\n")
		want := 7
		if profiling {
			want++
		}
		if code != http.StatusOK || len(lines) != want {
			t.Errorf("/ with profiling=%t: %d\n%s", profiling, code, text)
		}
		for _, line := range lines {
			path, _, _ := strings.Cut(line, " ")
			if code, answer := ask(t, base+path, ""); code == http.StatusNotFound {
				t.Errorf("%s is listed and not there: %s", path, answer)
			}
		}
	}
}

func TestAControllerThatDoesNotRunIsNamedWithTheNearest(t *testing.T) {
	l := listen(t)
	run(t, broken(t, somePods(t).Config(), manager.Serve(l, serving.Options{Plain: true}), manager.Aliases(map[string]string{"broken": "breaking"})))
	for name, want := range map[string]string{
		"braeking": `no controller "braeking" runs here; did you mean "breaking"?`,
		"brokn":    `no controller "brokn" runs here; did you mean "broken"?`,
		"job":      `no controller "job" runs here`,
	} {
		if code, text := ask(t, "http://"+l.Addr().String()+"/debug/controllers?controller="+name, ""); code != http.StatusNotFound || strings.TrimSpace(text) != want {
			t.Errorf("%d %s, want %s", code, text, want)
		}
	}
}
