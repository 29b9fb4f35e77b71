// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package managertest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/internal/controlplanetest"
)

// Alone is one controller as a process of its own: "setpoint manager", with the rights
// that "setpoint manager rbac" prints for it and no others. Between it and the server is
// a proxy, which sees its writes and may have it killed by one. Its methods are safe for
// concurrent use, except Start.
type Alone struct {
	t         testing.TB
	args      []string // of every process
	server    string   // the API server's own URL
	transport http.RoundTripper

	underWay underWay
	mu       sync.Mutex
	life     *life
	writes   []AloneWrite
	log      bytes.Buffer
}

// AloneWrite is a write that the server has carried out. Events and questions are none.
type AloneWrite struct {
	Method, Path string
	// Idle: the object was the same after it as before.
	Idle bool
	// Blind: it does not name the UID of the object. Another object of the name would
	// have been written as well.
	Blind bool
}

// life is one process, from its start to its end.
type life struct {
	cmd   *exec.Cmd
	left  int // writes until it is killed; below 0 it never is
	ended chan struct{}
}

// NewAlone makes what a controller needs: its account, and its rights, which are those
// of its manifest. rules are the same rights; they are waited for. flags are for
// "setpoint manager". A cluster has one Alone of a controller: their roles have one name.
func NewAlone(t testing.TB, cluster *controlplanetest.Cluster, controller string, rules []rbacv1.PolicyRule, flags ...string) *Alone {
	t.Helper()
	namespace, dir := cluster.Namespace(t), t.TempDir()
	manifest, err := output(t.Context(), "manager", "rbac", "--controllers", controller, "--service-account", namespace+"/alone")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "rbac.yaml")
	if err := os.WriteFile(file, manifest, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := cluster.Kubectl("apply", "--server-side", "--filename", file); err != nil {
		t.Fatal(err)
	}
	token, err := cluster.Kubectl("create", "token", "alone", "--namespace", namespace)
	if err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(cluster.Config)
	config.BearerToken = strings.TrimSpace(token)
	cluster.AwaitRights(t, config, rules)

	kubeconfig := filepath.Join(dir, "kubeconfig")
	a := &Alone{t: t, server: cluster.Config.Host, args: append([]string{
		"manager", "--kubeconfig", kubeconfig, "--controllers", controller, "--log-format", "text", "--secure-port", "0", "--leader-elect=false",
	}, flags...)}
	if a.transport, err = rest.TransportFor(config); err != nil {
		t.Fatal(err)
	}
	url := a.proxy(cluster)
	text := fmt.Sprintf("apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c}}]\nclusters: [{name: c, cluster: {server: %q}}]\n", url)
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return a
}

// output runs the command and returns what it prints.
func output(ctx context.Context, args ...string) ([]byte, error) {
	binary, err := controlplanetest.Binary("setpoint")
	if err != nil {
		return nil, err
	}
	out, err := exec.CommandContext(ctx, binary, args...).Output()
	if err != nil {
		return nil, fmt.Errorf("setpoint %s: %w", strings.Join(args, " "), err)
	}
	return out, nil
}

// Start starts the process. It is killed, by SIGKILL, once the server has carried out
// killAfter of its writes, before it hears of the last of them; with 0 it is not.
func (a *Alone) Start(killAfter int) {
	a.t.Helper()
	binary, err := controlplanetest.Binary("setpoint")
	if err != nil {
		a.t.Fatal(err)
	}
	l := &life{left: killAfter - 1, ended: make(chan struct{})}
	l.cmd = exec.CommandContext(context.WithoutCancel(a.t.Context()), binary, a.args...) // it ends with the clean-up
	l.cmd.Stderr = (*aloneLog)(a)
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := l.cmd.Start(); err != nil {
		a.t.Fatal(err)
	}
	a.life = l
	go func() {
		_ = l.cmd.Wait() // that it was killed is no news
		close(l.ended)
	}()
	a.t.Cleanup(l.kill)
}

func (l *life) kill() {
	_ = l.cmd.Process.Kill() // an error means that it has ended
	<-l.ended
}

// Ended is closed when the process that was started last has ended.
func (a *Alone) Ended() <-chan struct{} { return a.now().ended }

// Kill sends SIGKILL and waits for the end.
func (a *Alone) Kill() { a.now().kill() }

func (a *Alone) now() *life {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.life
}

// Writes returns the writes of all its lives, in the order in which the server answered.
// It waits for the answers of those that are under way.
func (a *Alone) Writes() []AloneWrite {
	a.underWay.wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	return slices.Clone(a.writes)
}

// Log returns what it has logged in all its lives.
func (a *Alone) Log() string {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.log.String()
}

// aloneLog is where an Alone writes its log.
type aloneLog Alone

func (a *aloneLog) Write(b []byte) (int, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.log.Write(b)
}

// proxy serves the API server to the process, as its account, and returns the URL.
func (a *Alone) proxy(cluster *controlplanetest.Cluster) string {
	a.t.Helper()
	target, err := url.Parse(a.server)
	if err != nil {
		a.t.Fatal(err)
	}
	administrator, err := rest.TransportFor(cluster.Config)
	if err != nil {
		a.t.Fatal(err)
	}
	proxy := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     &aloneWire{a, administrator},
		FlushInterval: -1,
		ErrorHandler:  func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }, // the process went
	})
	a.t.Cleanup(func() { proxy.CloseClientConnections(); proxy.Close() })
	return proxy.URL
}

// aloneWire is the way of an Alone to the server.
type aloneWire struct {
	*Alone
	administrator http.RoundTripper
}

var errNotHeard = errors.New("the process was killed before it heard the answer")

func (w *aloneWire) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet || isNone.MatchString(r.URL.Path) {
		return w.transport.RoundTrip(r)
	}
	defer w.underWay.begin()()
	l := w.now()
	// What has begun is carried out, whatever becomes of the client.
	r = r.Clone(context.WithoutCancel(r.Context()))
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	version, uid := w.object(r)
	response, err := w.transport.RoundTrip(r)
	if err != nil || response.StatusCode >= http.StatusBadRequest {
		return response, err
	}
	after, _ := w.object(r)
	w.mu.Lock()
	w.writes = append(w.writes, AloneWrite{
		Method: r.Method, Path: r.URL.Path,
		Idle: version != "" && version == after, Blind: !bytes.Contains(body, []byte(uid)),
	})
	killed := l.left == 0
	l.left--
	w.mu.Unlock()
	if killed {
		l.kill()
		return nil, errors.Join(errNotHeard, response.Body.Close())
	}
	return response, nil
}

// isNone matches paths of what is no write of a controller's own: Events, and questions,
// which the server answers and does not keep.
var isNone = regexp.MustCompile(`/events(/|$)|reviews$`)

// isObject matches the path of an object, or of a part of one.
var isObject = regexp.MustCompile(`^((/api/v1|/apis/[^/]+/[^/]+)/(namespaces/[^/]+/)?[^/]+/[^/]+?)(/(status|approval|finalize))?$`)

// object returns version and UID of what a request writes, "" if there is none. A write of
// another client between two reads hides that one of ours did nothing; it never makes one
// seem so.
func (w *aloneWire) object(r *http.Request) (version, uid string) {
	path := isObject.FindStringSubmatch(r.URL.Path)
	if path == nil {
		return "", ""
	}
	request, err := http.NewRequestWithContext(r.Context(), http.MethodGet, w.server+path[1], nil) //nolint:gosec // the path of the process's request, to the test's own server
	if err != nil {
		return "", ""
	}
	request.Header.Set("Accept", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1")
	response, err := w.administrator.RoundTrip(request)
	if err != nil {
		return "", ""
	}
	defer response.Body.Close()
	var object struct {
		Metadata struct{ ResourceVersion, UID string }
	}
	if json.NewDecoder(response.Body).Decode(&object) != nil {
		return "", ""
	}
	return object.Metadata.ResourceVersion, object.Metadata.UID
}
