// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
	clientgo "k8s.io/client-go/tools/cache"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

// consistencyServer is a server in memory with the kinds of this benchmark.
func consistencyServer(t *testing.T) *rest.Config {
	t.Helper()
	kind := func(kind, plural string, namespaced bool) object.Resource {
		return object.Resource{Version: "v1", Kind: kind, Plural: plural, Namespaced: namespaced}
	}
	api := fakeapi.New(kind("Namespace", "namespaces", false), kind("ConfigMap", "configmaps", true), kind("ServiceAccount", "serviceaccounts", true)).Listen()
	t.Cleanup(api.Close)
	return api.Config()
}

func TestConsistencyMeasuresAllSides(t *testing.T) {
	b := consistencyBench{lags: []time.Duration{0, 20 * time.Millisecond}, writes: []int{3}, owners: 2, workers: 2, rounds: 2, turns: 1, results: map[string][]readings{}}
	var out strings.Builder
	if err := b.measure(t.Context(), consistencyServer(t), &out); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{
		"lag0-writes3-wasted-runs", "lag0-writes3-delay-p50", "lag0-writes3-delay-p99", "lag0-writes3-cpu-per-round",
		"lag20-writes3-wasted-runs", "lag20-writes3-others-per-second",
	} {
		for _, name := range []string{name, name + "-vs-controller-runtime"} {
			if !strings.Contains(out.String(), "\n"+name+" ") {
				t.Errorf("there is no line of %s in\n%s", name, out.String())
			}
		}
	}
	for side, wasted := range map[string]bool{setpointSide: false, backOffSide: true, consistentSide: false} {
		found := b.results["lag20-writes3 "+side]
		if len(found) != 1 || found[0]["cpu"] <= 0 || found[0]["others"] <= 0 || found[0]["wasted"] > 0 != wasted {
			t.Errorf("%s: %v, want wasted runs: %t", side, found, wasted)
		}
	}
}

func TestARunOnAStaleStateCounts(t *testing.T) {
	b := consistencyBench{lags: []time.Duration{20 * time.Millisecond}, writes: []int{2}, owners: 1, workers: 1, rounds: 2, turns: 1, results: map[string][]readings{}}
	var out strings.Builder
	if err := b.measure(t.Context(), consistencyServer(t), &out); err != nil { // makes the world
		t.Fatal(err)
	}
	c := b.combinations()[0]
	if err := b.play(t.Context(), c, unawareSide); err != nil {
		t.Fatal(err)
	}
	if found := b.results[c.String()+" "+unawareSide][0]; found["wasted"] < 1 {
		t.Errorf("%v: a loop that does not wait for its writes has no wasted runs", found)
	}
}

func TestConsistencySaysWhatIsWrongWithItsArguments(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"consistency", "--rounds", "0"}, "--rounds 0"},
		{[]string{"consistency", "--only", "lag7-writes1"}, `there is no "lag7-writes1"; there are [lag0-writes1`},
		{[]string{sideCase, `{"Case":"consistency","Side":"client-go"}`}, `there is no side "client-go"`},
	} {
		var out strings.Builder
		if err := run(t.Context(), c.args, &out); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v, want one with %q", c.args, err, c.want)
		}
	}
}

func TestWatchesLagAndNothingElseDoes(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		flusher := http.NewResponseController(w)
		_, _ = io.WriteString(w, r.URL.Path+"\n") //nolint:gosec // plain text of a test
		_ = flusher.Flush()
		_, _ = io.WriteString(w, "more\n")
	}))
	defer server.Close()
	const lag = 100 * time.Millisecond
	proxy, err := newLagProxy(&rest.Config{Host: server.URL}, "serviceaccounts", lag)
	if err != nil {
		t.Fatal(err)
	}
	front := httptest.NewServer(proxy)
	defer front.Close()
	for path, lags := range map[string]bool{
		"/api/v1/serviceaccounts?watch=true": true, "/api/v1/serviceaccounts": false, "/api/v1/configmaps?watch=true": false,
	} {
		began := time.Now()
		response, err := http.Get(front.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		scanner := bufio.NewScanner(response.Body)
		for scanner.Scan() {
			lines = append(lines, scanner.Text())
		}
		_ = response.Body.Close()
		where, _, _ := strings.Cut(path, "?")
		if strings.Join(lines, " ") != where+" more" {
			t.Errorf("%s: %q", path, lines)
		}
		if took := time.Since(began); lags && took < lag {
			t.Errorf("%s: everything is there after %s", path, took)
		}
		request, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, path, http.NoBody)
		if proxy.lags(request) != lags {
			t.Errorf("%s: want a lag: %t", path, lags)
		}
	}
}

func TestALaggingBodyKeepsTheTimesBetweenItsParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, feed := io.Pipe()
		body := newLaggingBody(source, time.Second)
		began := time.Now()
		go func() {
			_, _ = feed.Write([]byte("a"))
			time.Sleep(300 * time.Millisecond)
			_, _ = feed.Write([]byte("b"))
			_ = feed.Close()
		}()
		var at []int64
		buffer := make([]byte, 10)
		for {
			n, err := body.Read(buffer)
			if n > 0 {
				at = append(at, time.Since(began).Milliseconds())
			}
			if err != nil {
				break
			}
		}
		if len(at) != 2 || at[0] != 1000 || at[1] != 1300 {
			t.Errorf("read at %v ms, want 1000 and 1300", at)
		}
	})
}

func TestALaggingBodyEndsWhenItIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		source, _ := io.Pipe()
		body := newLaggingBody(source, time.Second)
		go func() {
			time.Sleep(time.Second)
			_ = body.Close()
		}()
		if n, err := body.Read(make([]byte, 10)); n != 0 || err == nil {
			t.Errorf("%d bytes, error %v, want an error", n, err)
		}
		_ = body.Close() // a second time
	})
}

func TestTheDelayCountsFromWhenTheCacheHasEverything(t *testing.T) {
	w := newConsistencyWorld(1, 2)
	key := object.Key{Namespace: ownerNamespace(2, 0), Name: ownerName}
	r := w.owners[key]
	r.wanted, r.note, r.arrived = "7", "7", map[string]bool{}
	child := func(i int) object.Key { return object.Key{Namespace: key.Namespace, Name: childName(i)} }
	w.childArrived(child(0), "7")
	w.childArrived(child(0), "7") // again
	w.childArrived(child(1), "6") // of the round before
	w.ownerArrived(key, "6")
	if !r.caught.IsZero() || !r.heard.IsZero() {
		t.Error("a cache without the second child or the change of the owner counts as one that has everything")
	}
	w.childArrived(child(1), "7")
	w.ownerArrived(key, "7")
	if r.caught.IsZero() || r.heard.IsZero() {
		t.Error("a cache with everything does not count as one")
	}
}

func TestTheStoreOfVersionsIsBehindUntilItsCacheHasTheNewest(t *testing.T) {
	c := &backOffConsistency{versions: map[object.Key]string{}, store: storeAt("9")}
	key := object.Key{Namespace: "a", Name: "b"}
	if err := c.ensureReady(key); err != nil {
		t.Errorf("without writes: %v", err)
	}
	c.wroteAt(key, "10")
	c.wroteAt(key, "9") // an older one, by another goroutine
	if err := c.ensureReady(key); err == nil {
		t.Error("version 10 was written, the cache has 9, and the key is ready")
	}
	c.store = storeAt("10")
	if err := c.ensureReady(key); err != nil || len(c.versions) != 0 {
		t.Errorf("the cache has what was written: %v, %v", err, c.versions)
	}
}

// storeAt is a store of a cache that has seen a version.
func storeAt(version string) clientgo.Store {
	store := clientgo.NewStore(clientgo.MetaNamespaceKeyFunc)
	store.Bookmark(version)
	return store
}
