// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/setpoint-io/setpoint/watch/event"
)

// widgets is an object with a list of n elements, in which every element differs from that of
// another turn, and whose author owns each element by name.
func widgets(n, turn int) map[string]any {
	list := make([]any, n)
	owned := make(map[string]any, n)
	for i := range list {
		name := fmt.Sprintf("item-%06d", i)
		list[i] = map[string]any{"name": name, "value": int64(turn), "token": fmt.Sprint(turn)}
		owned[fmt.Sprintf(`k:{"name":%q}`, name)] = map[string]any{".": map[string]any{}, "f:value": map[string]any{}}
	}
	return map[string]any{
		"apiVersion": "example.com/v1", "kind": "Widget",
		"metadata": map[string]any{"name": "w", "uid": "u", "resourceVersion": fmt.Sprint(turn), "managedFields": []any{
			map[string]any{"manager": "one", "operation": "Update", "time": "2026-01-01T00:00:00Z", "fieldsV1": map[string]any{
				"f:spec": map[string]any{"f:items": owned}}},
			map[string]any{"manager": "two", "operation": "Update", "time": "2026-01-01T00:00:00Z", "fieldsV1": map[string]any{
				"f:spec": map[string]any{"f:other": map[string]any{}}}},
		}},
		"spec": map[string]any{"items": list},
	}
}

func observerOfWidgets(t testing.TB, hide ...string) *Observer {
	t.Helper()
	o := Options{Kind: event.Kind{Group: "example.com", Version: "v1", Kind: "Widget", Resource: "widgets"}}
	for _, text := range hide {
		rule, err := ParseRule(text)
		if err != nil {
			t.Fatal(err)
		}
		o.Hide = append(o.Hide, rule)
	}
	return New(o)
}

// sizeVariable has the test binary do the work of one update instead of counting it.
const sizeVariable = "SETPOINT_TEST_LIST_SIZE"

// The work for an update grows as the list does, and not as its square: ten times the list is
// ten times the work, where the square would be a hundred. What is counted are the statements
// that a binary built with coverage executes in this package and in diff, so that a search
// counts that allocates nothing; BenchmarkLargeList shows the time.
func TestTheWorkGrowsAsTheObjectDoes(t *testing.T) {
	cases := map[string][]string{"nothing hidden": nil, "values hidden": {"widgets.example.com:spec.items[*].token"}}
	if size := os.Getenv(sizeVariable); size != "" {
		n, err := strconv.Atoi(size)
		if err != nil {
			t.Fatal(err)
		}
		for name, hide := range cases {
			t.Run(name, func(t *testing.T) { update(t, n, hide) })
		}
		return
	}
	binary := filepath.Join(t.TempDir(), "observe.test")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-covermode=count", "-coverpkg=.,../diff", "-o", binary, ".")
	build.Env = append(build.Environ(), "CGO_ENABLED=0") // as make build compiles what it needs
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building the test with coverage: %v\n%s", err, out)
	}
	for name := range cases {
		t.Run(name, func(t *testing.T) {
			few, many := statements(t, binary, 300), statements(t, binary, 3000)
			t.Logf("%d statements for 300 elements, %d for 3000", few, many)
			if few < 300 {
				t.Fatalf("%d statements are no measure of the work", few)
			}
			if many > 20*few {
				t.Errorf("ten times the list is %d times the work", many/few)
			}
		})
	}
}

// update makes the event of an update of a list of n elements.
func update(t *testing.T, n int, hide []string) {
	t.Helper()
	e := observerOfWidgets(t, hide...).Event(Change{Verb: event.Updated, Old: widgets(n, 1), New: widgets(n, 2)})
	if len(e.Fields) != 2*n || len(e.Authors) != 1 || e.Authors[0].Manager != "one" {
		t.Errorf("%d fields by %v, want %d by one", len(e.Fields), e.Authors, 2*n)
	}
}

// statements runs the subtest of this name in binary, for a list of n elements, and returns how
// many statements it executed. Each line of a profile ends with how many statements a block has
// and how often it ran.
func statements(t *testing.T, binary string, n int) int {
	t.Helper()
	profile := filepath.Join(t.TempDir(), "profile")
	run := exec.CommandContext(t.Context(), binary, "-test.run=^"+strings.ReplaceAll(t.Name(), "/", "$/^")+"$", "-test.coverprofile="+profile)
	run.Env = append(os.Environ(), fmt.Sprintf("%s=%d", sizeVariable, n))
	if out, err := run.CombinedOutput(); err != nil {
		t.Fatalf("an update of %d elements: %v\n%s", n, err, out)
	}
	text, err := os.ReadFile(profile)
	if err != nil {
		t.Fatal(err)
	}
	total := 0
	for line := range strings.Lines(string(text)) {
		fields := strings.Fields(line)
		if len(fields) != 3 {
			continue // the mode
		}
		size, err := strconv.Atoi(fields[1])
		times, err2 := strconv.Atoi(fields[2])
		if err := errors.Join(err, err2); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		total += size * times
	}
	return total
}

func BenchmarkLargeList(b *testing.B) {
	o := observerOfWidgets(b)
	old, now := widgets(50_000, 1), widgets(50_000, 2)
	b.ReportAllocs()
	for b.Loop() {
		o.Event(Change{Verb: event.Updated, Old: old, New: now})
	}
}
