// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/manager/serving"
)

// What strangers can do to a manager whose secure port they reach. Each test is an attack.

// slowReviews is an API server that does not answer reviews before their time is over.
type slowReviews struct {
	next    http.RoundTripper
	reviews atomic.Int64
	renewed atomic.Int64
}

func (s *slowReviews) RoundTrip(r *http.Request) (*http.Response, error) {
	if strings.HasSuffix(r.URL.Path, "reviews") {
		s.reviews.Add(1)
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	if isLease(r) && r.Method == http.MethodPut {
		s.renewed.Add(1)
	}
	return s.next.RoundTrip(r)
}

// Each token that the API server must be asked about cost one of the turns by which the
// lease is renewed.
func TestAFloodOfBogusTokensDoesNotEndTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		network := &slowReviews{next: podServer(t)}
		l := newPipes()
		m, err := manager.New(&rest.Config{Host: "http://in-memory", Transport: network}, manager.Serve(l, serving.Options{}),
			manager.Log(slog.New(slog.DiscardHandler)), manager.Instance("a"), manager.LeaderElection(locked))
		if err != nil {
			t.Fatal(err)
		}
		ended, stop := ending(t, m)
		time.Sleep(time.Minute)
		before := network.renewed.Load()
		var flood sync.WaitGroup
		var refused atomic.Int64
		for range 2 {
			for i := range 200 {
				flood.Go(func() {
					sent := time.Now()
					code, text := l.get(t, true, "/metrics", fmt.Sprintf("bogus-%d", i))
					if code == http.StatusTooManyRequests && time.Since(sent) == 0 {
						refused.Add(1)
					}
					if code == http.StatusOK {
						t.Errorf("a stranger gets %d %s", code, text)
					}
				})
			}
			time.Sleep(10 * time.Second)
		}
		flood.Wait()
		select {
		case err := <-ended:
			t.Fatalf("the leader has ended: %v", err)
		default:
		}
		if n := network.renewed.Load() - before; n < 9 {
			t.Errorf("%d renewals in 20 s of flood, want one every 2 s", n)
		}
		if refused.Load() == 0 {
			t.Error("no request was refused at once")
		}
		if n := network.reviews.Load(); n > 100 {
			t.Errorf("400 requests of strangers cost %d reviews", n)
		}
		if code, text := l.get(t, true, "/livez", ""); code != http.StatusOK {
			t.Errorf("/livez: %d %s", code, text)
		}
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
}

// growth is by how much the heap is larger after f, in bytes.
func growth(f func()) int64 {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	f()
	runtime.GC()
	runtime.ReadMemStats(&after)
	return int64(after.HeapAlloc) - int64(before.HeapAlloc)
}

// bogusServer is a manager on a port with TLS, whose API server knows no token.
func bogusServer(t *testing.T, profiling bool) (base string, reviews func() int) {
	t.Helper()
	reviewing := &reviewer{next: somePods(t)}
	server := http.Server{Handler: reviewing, ReadHeaderTimeout: deadline}
	api := listen(t)
	go func() { _ = server.Serve(api) }()
	t.Cleanup(func() { _ = server.Close() })
	l := listen(t)
	run(t, broken(t, &rest.Config{Host: "http://" + api.Addr().String()}, manager.Serve(l, serving.Options{Profiling: profiling})))
	base = "https://" + l.Addr().String()
	waitFor(t, "the manager to be ready", func() bool { code, _ := ask(t, base+"/readyz", ""); return code == http.StatusOK })
	return base, func() int {
		reviewing.mu.Lock()
		defer reviewing.mu.Unlock()
		return reviewing.reviews
	}
}

// Answers were remembered by paths of any length, of which /debug/pprof/ took all.
func TestPathsOfStrangersDoNotFillTheMemory(t *testing.T) {
	base, reviews := bogusServer(t, true)
	long := strings.Repeat("x", 900<<10)
	grown := growth(func() {
		for i := range 40 {
			if code, text := ask(t, fmt.Sprintf("%s/debug/pprof/%s%d", base, long, i), "bogus"); code == http.StatusOK {
				t.Fatalf("%d %.100s", code, text)
			}
		}
	})
	if grown > 16<<20 {
		t.Errorf("40 requests of strangers left %d MB behind", grown>>20)
	}
	before := reviews()
	for i := range 40 {
		if code, text := ask(t, fmt.Sprintf("%s/debug/pprof/x%d", base, i), "bogus"); code != http.StatusNotFound && code != http.StatusUnauthorized {
			t.Errorf("a path that is not there: %d %s", code, text)
		}
	}
	if n := reviews() - before; n > 0 {
		t.Errorf("the API server was asked %d times about paths that are not there", n)
	}
}

// Each of the names cost a copy of the checks and of all that was said of the names before.
func TestExcludingNamesCostsNoMoreThanReadingThem(t *testing.T) {
	base, _ := bogusServer(t, false)
	cost := func(query string) (code int, bytes uint64) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		code, _ = ask(t, base+"/healthz?"+query, "")
		runtime.ReadMemStats(&after)
		return code, after.TotalAlloc - before.TotalAlloc
	}
	if code, _ := cost(strings.Repeat("exclude=a&", 100_000)); code != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a megabyte of query: %d, want %d", code, http.StatusRequestHeaderFieldsTooLarge)
	}
	code, bytes := cost("verbose&" + strings.Repeat("exclude=a&", 3000))
	if code != http.StatusOK || bytes > 16<<20 {
		t.Errorf("30 KB of query: %d, and %d MB of memory were allocated", code, bytes>>20)
	}
}

func TestHeadersAreBounded(t *testing.T) {
	base, reviews := bogusServer(t, false)
	before := reviews()
	if code, _ := ask(t, base+"/metrics", strings.Repeat("x", 64<<10)); code != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a token of 64 KB: %d, want %d", code, http.StatusRequestHeaderFieldsTooLarge)
	}
	if n := reviews() - before; n > 0 {
		t.Errorf("the API server was asked %d times about it", n)
	}
}

// quiet is a manager that serves on pipes until the test ends.
func quiet(t *testing.T, l net.Listener, s serving.Options, parts ...controller.Runnable) (end func()) {
	t.Helper()
	m, err := manager.New(podServer(t).Config(), manager.Serve(l, s), manager.Log(slog.New(slog.DiscardHandler)), manager.Instance("a"))
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range parts {
		if err := m.Add(part); err != nil {
			t.Fatal(err)
		}
	}
	ended, stop := ending(t, m)
	return func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// A client that opens connections and sends nothing leaves room for the probes of others.
func TestConnectionsOfOneAddressAreBoundedAndKeepNobodyElseOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipes()
		defer quiet(t, l, serving.Options{})()
		synctest.Wait()
		var open atomic.Int64
		var readers sync.WaitGroup
		var all []net.Conn
		for range 2000 {
			c, err := l.dial(t.Context(), "10.0.0.66")
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, c)
			open.Add(1)
			readers.Go(func() {
				_, _ = c.Read(make([]byte, 1)) // until the server closes it
				open.Add(-1)
			})
		}
		synctest.Wait()
		if n := open.Load(); n > 256 {
			t.Errorf("%d connections of one address are open", n)
		}
		if code, text := l.get(t, true, "/livez", ""); code != http.StatusOK {
			t.Errorf("/livez for another address: %d %s", code, text)
		}
		for _, c := range all {
			_ = c.Close()
		}
		readers.Wait()
	})
}

// A request whose body never ends held its connection for ever.
func TestABodyThatDoesNotEndEndsTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipes()
		defer quiet(t, l, serving.Options{Plain: true, Profiling: true})()
		synctest.Wait()
		for _, head := range []string{
			"GET /livez HTTP/1.1\r\nHost: localhost\r\nContent-Length: 200000\r\n\r\n",
			"GET /livez HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n",
			"GET /livez HTTP/1.1\r\nHost: localhost\r\n", // nor does the head
		} {
			c, err := l.dial(t.Context(), "10.0.0.66")
			if err != nil {
				t.Fatal(err)
			}
			ended := make(chan struct{})
			go func() {
				defer close(ended)
				_, _ = io.Copy(io.Discard, c)
			}()
			if _, err := c.Write([]byte(head)); err != nil {
				t.Fatal(err)
			}
			select {
			case <-ended:
			case <-time.After(time.Minute):
				t.Errorf("after a minute the connection is still open: %q", head)
			}
			_ = c.Close()
			<-ended
		}
	})
}

// A profile takes longer than a stranger may take to send a request.
func TestAProfileMayTakeLongerThanARequest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipes()
		defer quiet(t, l, serving.Options{Plain: true, Profiling: true})()
		synctest.Wait()
		began := time.Now()
		if code, text := l.get(t, false, "/debug/pprof/goroutine?seconds=45", ""); code != http.StatusOK || time.Since(began) < 45*time.Second {
			t.Errorf("after %s: %d %.100s", time.Since(began), code, text)
		}
	})
}

// Names of kinds, and the address of the server, are nobody's who only may know whether the
// process is well.
func TestStrangersLearnWhichChecksFailAndNotWhy(t *testing.T) {
	closed, l, plain := listen(t), listen(t), listen(t)
	address := closed.Addr().String()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	var log lockedBuffer
	m, err := manager.New(&rest.Config{Host: "http://" + address}, manager.Serve(l, serving.Options{}), manager.Serve(plain, serving.Options{Plain: true}),
		manager.Log(slog.New(slog.NewTextHandler(&log, nil))), manager.Instance("test"))
	if err != nil {
		t.Fatal(err)
	}
	run(t, m)
	base := "https://" + l.Addr().String()
	for _, path := range []string{"/readyz", "/readyz/server", "/readyz?verbose"} {
		code, text := ask(t, base+path, "")
		if code != http.StatusInternalServerError || strings.Contains(text, address) || !strings.Contains(text, "[-]server failed: reason withheld") {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	if text := log.String(); strings.Count(text, "a health check fails") != 1 || !strings.Contains(text, address) {
		t.Errorf("the log should have the reason once:\n%s", text)
	}
	if _, text := ask(t, "http://"+plain.Addr().String()+"/debug/controllers", ""); !strings.Contains(text, "not ready: server: http://"+address+" has not answered yet") {
		t.Errorf("the page for those who may see it lacks the reason:\n%s", text)
	}
}

// A page in a browser may have its own name lead to 127.0.0.1, and then asks there.
func TestThePlainPortAnswersToItsOwnNamesAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newPipes()
		defer quiet(t, l, serving.Options{Plain: true, Profiling: true})()
		synctest.Wait()
		for _, test := range []struct {
			headers string
			code    int
		}{
			{"Host: localhost", http.StatusOK},
			{"Host: LocalHost:8080", http.StatusOK},
			{"Host: 127.0.0.1:10257", http.StatusOK},
			{"Host: 127.9.9.9", http.StatusOK},
			{"Host: [::1]:10257", http.StatusOK},
			{"Host: [::1]", http.StatusOK},
			{"Host: evil.example:10257", http.StatusMisdirectedRequest},
			{"Host: localhost.evil.example", http.StatusMisdirectedRequest},
			{"Host: 127.0.0.1.evil.example:10257", http.StatusMisdirectedRequest},
			{"Host: 10.0.0.1", http.StatusMisdirectedRequest},
			{"Host: localhost\r\nSec-Fetch-Site: cross-site", http.StatusForbidden},
			{"Host: localhost\r\nSec-Fetch-Site: same-site", http.StatusForbidden},
			{"Host: localhost\r\nSec-Fetch-Site: same-origin", http.StatusOK},
			{"Host: localhost\r\nSec-Fetch-Site: none", http.StatusOK},
			{"Host: localhost\r\nOrigin: http://evil.example", http.StatusForbidden},
		} {
			for _, path := range []string{"/debug/pprof/cmdline", "/livez", "/debug/controllers"} {
				c, err := l.dial(t.Context(), "127.0.0.1")
				if err != nil {
					t.Fatal(err)
				}
				if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\n%s\r\nConnection: close\r\n\r\n", path, test.headers); err != nil {
					t.Fatal(err)
				}
				response, err := http.ReadResponse(bufio.NewReader(c), nil)
				if err != nil {
					t.Fatal(err)
				}
				text, err := io.ReadAll(response.Body)
				if err != nil || response.StatusCode != test.code {
					t.Errorf("%s with %q: %d %s (%v), want %d", path, test.headers, response.StatusCode, text, err, test.code)
				}
				_ = response.Body.Close()
				_ = c.Close()
			}
		}
	})
}

// What objects and errors say must not steer the terminal of its reader.
func TestDebugPagesHaveNoControlCharacters(t *testing.T) {
	const evil = "red \x1b[31m bell \a back \b\r line \x7f csi \u009b2J over \u202e invalid \xff end"
	l := listen(t)
	m, err := manager.New(somePods(t).Config(), manager.Serve(l, serving.Options{Plain: true}),
		manager.Log(slog.New(slog.DiscardHandler)), manager.Instance("evil\x1b]0;title\a\nname"))
	if err != nil {
		t.Fatal(err)
	}
	pods := cache.Informer[*corev1.Pod](m)
	if err := m.Add(controller.New("evil", func(context.Context, controller.Request) (controller.Result, error) {
		return controller.Result{}, errors.New(evil)
	}, controller.For(pods))); err != nil {
		t.Fatal(err)
	}
	if _, err := pods.AddHandler(func(cache.Event[*corev1.Pod]) {}, cache.HandlerOptions{Name: "evil " + evil}); err != nil {
		t.Fatal(err)
	}
	run(t, m)
	base := "http://" + l.Addr().String()
	for path, want := range map[string]string{"/debug/controllers": `red \x1b[31m bell \a back \b\r line \x7f csi \u009b2J over \u202e invalid \xff end`, "/debug/informers": `evil red \x1b[31m`} {
		text := ""
		waitFor(t, path+" to show "+want, func() bool {
			_, text = ask(t, base+path, "")
			return strings.Contains(text, want)
		})
		for _, r := range text {
			if r != '\n' && (r < ' ' || r == 0x7f || r >= 0x80 && r < 0xa0 || r == '\u202e' || r == '\ufffd') {
				t.Errorf("%s has %q", path, r)
			}
		}
		if strings.Contains(text, "\nname") {
			t.Errorf("%s: a line of its own: %q", path, text)
		}
	}
}

// Controllers and events that flood the server must not share a connection with the lease.
func TestTheLeaseHasConnectionsOfItsOwn(t *testing.T) {
	var mu sync.Mutex
	used := map[string]map[bool]bool{} // addresses of connections, by whether they were for the lease
	pods := podServer(t)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		if used[r.RemoteAddr] == nil {
			used[r.RemoteAddr] = map[bool]bool{}
		}
		used[r.RemoteAddr][isLease(r)] = true
		mu.Unlock()
		pods.ServeHTTP(w, r)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	config := &rest.Config{Host: server.URL, TLSClientConfig: rest.TLSClientConfig{Insecure: true}}
	m, err := manager.New(config, manager.Log(slog.New(slog.DiscardHandler)), manager.Instance("a"), manager.LeaderElection(locked))
	if err != nil {
		t.Fatal(err)
	}
	cache.Informer[*corev1.Pod](m)
	working := make(chan struct{})
	if err := m.Add(part{"worker", func(ctx context.Context) error { close(working); <-ctx.Done(); return nil }}); err != nil {
		t.Fatal(err)
	}
	stop := run(t, m)
	<-working
	waitFor(t, "the Pods", func() bool { return m.InformerFactory().Status()[0].Synced })
	if err := stop(); err != nil {
		t.Error(err)
	}
	mu.Lock()
	defer mu.Unlock()
	for address, by := range used {
		if len(by) > 1 {
			t.Errorf("%s had requests of the lease and others", address)
		}
	}
}
