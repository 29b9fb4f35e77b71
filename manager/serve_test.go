// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/manager/serving"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
	"github.com/setpoint-io/setpoint/wire"
)

func listen(t *testing.T) net.Listener {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() }) // the manager has closed it
	return l
}

// ask sends a GET and returns the answer's code and text.
func ask(t *testing.T, url, token string) (int, string) {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DisableKeepAlives: true} //nolint:gosec // the certificate is self-made
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := transport.RoundTrip(r)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// broken is a controller of Pods of which one fails, on a manager that serves.
func broken(t *testing.T, config *rest.Config, options ...manager.Option) *manager.Manager {
	t.Helper()
	m, err := manager.New(config, append(options, manager.Log(slog.New(slog.NewTextHandler(t.Output(), nil))), manager.Instance("test"))...)
	if err != nil {
		t.Fatal(err)
	}
	pods := cache.Informer[*corev1.Pod](m)
	if err := m.Add(controller.New("breaking", func(_ context.Context, req controller.Request) (controller.Result, error) {
		if req.Key.Name == "bad" {
			return controller.Result{}, errors.New("the oven is cold")
		}
		return controller.Result{}, nil
	}, controller.For(pods))); err != nil {
		t.Fatal(err)
	}
	if err := m.Add(oven{prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "oven_celsius"}, func() float64 { return 18 })}); err != nil {
		t.Fatal(err)
	}
	return m
}

// oven is a part that has metrics of its own.
type oven struct{ prometheus.Collector }

func (oven) Name() string { return "oven" }
func (oven) Run(ctx context.Context) error {
	<-ctx.Done()
	return nil
}

func somePods(t *testing.T) *fakeapi.Resource {
	t.Helper()
	server := fakeapi.New().Listen().Serve(podsResource)
	t.Cleanup(server.Close)
	for _, name := range []string{"good", "bad"} {
		if err := server.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}); err != nil {
			t.Fatal(err)
		}
	}
	return server
}

func TestPagesSayWhatAManagerDoesAndWhatFails(t *testing.T) {
	l := listen(t)
	m := broken(t, somePods(t).Config(), manager.Serve(l, serving.Options{Plain: true, Profiling: true}),
		manager.Aliases(map[string]string{"broken": "breaking"}))
	run(t, m)
	base := "http://" + l.Addr().String()
	page := ""
	waitFor(t, "the failure to be shown", func() bool {
		_, page = ask(t, base+"/debug/controllers", "")
		return strings.Contains(page, "test: working") && strings.Contains(page, "the oven is cold") // it is no snapshot
	})
	for _, want := range []string{"breaking", "ns/bad", "failed ", "delayed", "keys failing"} {
		if !strings.Contains(page, want) {
			t.Errorf("/debug/controllers lacks %q:\n%s", want, page)
		}
	}
	for path, want := range map[string]string{
		"/debug/controllers?controller=breaking&limit=1": "ns/bad",
		"/debug/controllers?controller=broken":           "\nbreaking\n",
		"/":                                              "\n/debug/pprof/ ",
		"/debug/informers":                               "breaking",
		"/healthz":                                       "ok",
		"/livez?verbose":                                 "[+]leaderElection ok\nlivez check passed",
		"/readyz?verbose":                                "[+]informers ok",
		"/readyz/informers":                              "ok",
		"/debug/pprof/cmdline":                           "",
	} {
		if code, text := ask(t, base+path, ""); code != http.StatusOK || !strings.Contains(text, want) {
			t.Errorf("%s: %d %s", path, code, text)
		}
	}
	for path, code := range map[string]int{
		"/readyz/nonsense": http.StatusNotFound, "/debug/controllers?limit=x": http.StatusBadRequest,
		"/debug/controllers?controller=x": http.StatusNotFound, "/nonsense": http.StatusNotFound,
	} {
		if got, text := ask(t, base+path, ""); got != code {
			t.Errorf("%s: %d %s", path, got, text)
		}
	}
	_, text := ask(t, base+"/metrics", "")
	for _, want := range []string{
		`workqueue_depth{name="breaking"}`, `workqueue_adds_total{name="breaking"}`, `workqueue_retries_total{name="breaking"}`,
		`workqueue_queue_duration_seconds_bucket{name="breaking",le="+Inf"}`, `workqueue_work_duration_seconds_count{name="breaking"}`,
		`workqueue_unfinished_work_seconds{name="breaking"}`, `workqueue_longest_running_processor_seconds{name="breaking"}`,
		`workqueue_keys{name="breaking",state="failing"} 1`, `setpoint_controller_failures_total{controller="breaking"}`,
		`setpoint_informer_objects{kind="pods",selects=""} 2`, "go_goroutines", "oven_celsius 18",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("/metrics lacks %s", want)
		}
	}
}

func TestReadinessWaitsForTheServerAndSaysSo(t *testing.T) {
	closed, l := listen(t), listen(t)
	address := closed.Addr().String()
	if err := closed.Close(); err != nil {
		t.Fatal(err)
	}
	run(t, broken(t, &rest.Config{Host: "http://" + address}, manager.Serve(l, serving.Options{Plain: true})))
	base := "http://" + l.Addr().String()
	code, text := ask(t, base+"/readyz", "")
	if code != http.StatusInternalServerError || !strings.Contains(text, "[-]server failed: reason withheld") {
		t.Errorf("/readyz: %d %s", code, text)
	}
	if _, text := ask(t, base+"/debug/controllers", ""); !strings.Contains(text, "not ready: server: http://"+address+" has not answered yet") {
		t.Errorf("/debug/controllers: %s", text)
	}
	if code, text := ask(t, base+"/readyz?exclude=server&exclude=informers", ""); code != http.StatusOK {
		t.Errorf("without what fails: %d %s", code, text)
	}
	if code, text := ask(t, base+"/livez", ""); code != http.StatusOK {
		t.Errorf("/livez: %d %s", code, text)
	}
	if code, _ := ask(t, base+"/debug/pprof/", ""); code != http.StatusNotFound {
		t.Errorf("profiles are served although they are off: %d", code)
	}
}

func TestHTTPWithoutTLSIsServedOnLoopbackAddressesAlone(t *testing.T) {
	l, err := net.Listen("tcp", ":0") //nolint:gosec // nothing is accepted on it
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if _, err = manager.New(&rest.Config{Host: "http://127.0.0.1:1"}, manager.Serve(l, serving.Options{Plain: true})); err == nil || !strings.Contains(err.Error(), "use a loopback address") {
		t.Errorf("it says %v", err)
	}
}

// reviewer is an API server that knows two tokens.
type reviewer struct {
	next    http.Handler
	mu      sync.Mutex
	reviews int
	broken  bool
}

func (s *reviewer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !strings.Contains(r.URL.Path, "reviews") {
		s.next.ServeHTTP(w, r)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reviews++
	if s.broken {
		w.WriteHeader(http.StatusForbidden)
		return
	}
	body, _ := io.ReadAll(r.Body)
	_, kind, raw, err := wire.Protobuf.Open(body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	var answer runtime.Object
	switch kind {
	case "TokenReview":
		review := &authenticationv1.TokenReview{}
		_ = wire.Protobuf.Decode(raw, review) // an empty one is refused below
		review.Status.Authenticated = strings.HasPrefix(review.Spec.Token, "token-of-")
		review.Status.User = authenticationv1.UserInfo{Username: strings.TrimPrefix(review.Spec.Token, "token-of-")}
		answer = review
	case "SubjectAccessReview":
		review := &authorizationv1.SubjectAccessReview{}
		_ = wire.Protobuf.Decode(raw, review)
		may := review.Spec.NonResourceAttributes
		review.Status.Allowed = review.Spec.User == "prometheus" && may.Path == "/metrics" && may.Verb == "get"
		answer = review
	}
	marshaler, ok := answer.(interface{ Marshal() ([]byte, error) })
	if !ok {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	raw, _ = marshaler.Marshal()
	out, _ := wire.Seal(strings.Join(strings.Split(r.URL.Path, "/")[2:4], "/"), kind, raw)
	w.Header().Set("Content-Type", wire.Protobuf.MediaType())
	_, _ = w.Write(out) //nolint:gosec // no browser reads protobuf
}

func TestBeyondHealthTheAPIServerDecidesWhoMaySeeWhat(t *testing.T) {
	reviews := &reviewer{next: somePods(t)}
	server := http.Server{Handler: reviews, ReadHeaderTimeout: deadline}
	api := listen(t)
	go func() { _ = server.Serve(api) }()
	t.Cleanup(func() { _ = server.Close() })

	l := listen(t)
	run(t, broken(t, &rest.Config{Host: "http://" + api.Addr().String()}, manager.Serve(l, serving.Options{})))
	base := "https://" + l.Addr().String()
	waitFor(t, "the manager to be ready", func() bool { code, _ := ask(t, base+"/readyz", ""); return code == http.StatusOK })
	for _, test := range []struct {
		path, token string
		code        int
		says        string
	}{
		{"/livez", "", http.StatusOK, "ok"},
		{"/healthz/ping", "", http.StatusOK, "ok"},
		{"/metrics", "", http.StatusUnauthorized, "bearer token"},
		{"/metrics", "forged", http.StatusUnauthorized, "does not know this token"},
		{"/metrics", "token-of-somebody", http.StatusForbidden, `User "somebody" cannot get path "/metrics"`},
		{"/debug/controllers", "token-of-prometheus", http.StatusForbidden, "cannot get path"},
		{"/metrics", "token-of-prometheus", http.StatusOK, "workqueue_depth"},
	} {
		if code, text := ask(t, base+test.path, test.token); code != test.code || !strings.Contains(text, test.says) {
			t.Errorf("%s with %q: %d %.200s", test.path, test.token, code, text)
		}
	}
	reviews.mu.Lock()
	before := reviews.reviews
	reviews.broken = true
	reviews.mu.Unlock()
	began := time.Now()
	for range 10 {
		if code, _ := ask(t, base+"/metrics", "token-of-prometheus"); code != http.StatusOK && time.Since(began) < 10*time.Second {
			t.Errorf("an answer that was given just now is forgotten: %d", code)
		}
	}
	if code, text := ask(t, base+"/debug/informers", "token-of-prometheus"); code != http.StatusInternalServerError || strings.Contains(text, "forbidden") {
		t.Errorf("while the API server does not say: %d %s", code, text)
	}
	reviews.mu.Lock()
	defer reviews.mu.Unlock()
	if reviews.reviews != before+1 && time.Since(began) < 10*time.Second {
		t.Errorf("%d questions for one that was new", reviews.reviews-before)
	}
	if code, text := ask(t, "http://"+l.Addr().String()+"/livez", ""); code == http.StatusOK {
		t.Errorf("it speaks without TLS: %s", text)
	}
}
