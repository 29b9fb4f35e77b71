// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// serverAddress is where the server of the simulated nodes listens. It is the
// InternalDNS address of each of them: their InternalIP is one that Pods with
// hostNetwork share, and Endpoints refuse loopback addresses.
const serverAddress = "127.0.0.1"

const (
	// headerTimeout bounds how long a client may take to send a request.
	headerTimeout = 10 * time.Second

	// serverGrace bounds how long a stop waits for requests. Those that follow a
	// log end with the context, all others take milliseconds.
	serverGrace = 2 * time.Second
)

// kubeletServer is the part of a kubelet's API behind kubectl logs, exec, attach and
// port-forward, for all simulated Nodes: a Pod's name leads to its Node.
type kubeletServer struct {
	store *store
	log   *slog.Logger
	now   func() time.Time
}

// listen opens a free port for the server.
func (s *kubeletServer) listen(ctx context.Context, config *tls.Config) (net.Listener, error) {
	var free net.ListenConfig
	l, err := free.Listen(ctx, "tcp", net.JoinHostPort(serverAddress, "0"))
	if err != nil {
		return nil, fmt.Errorf("listening for requests to the simulated nodes: %w", err)
	}
	return tls.NewListener(l, config), nil
}

// serve answers until ctx ends, and returns when no request is under way.
func (s *kubeletServer) serve(ctx context.Context, l net.Listener) {
	server := &http.Server{
		Handler:           s.handler(),
		ReadHeaderTimeout: headerTimeout,
		BaseContext:       func(net.Listener) context.Context { return ctx },
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug),
	}
	// The API server upgrades connections for exec, which HTTP/2 does not have.
	server.Protocols = new(http.Protocols)
	server.Protocols.SetHTTP1(true)

	stopped := make(chan struct{})
	context.AfterFunc(ctx, func() {
		defer close(stopped)
		bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), serverGrace)
		defer cancel()
		if err := server.Shutdown(bounded); err != nil {
			_ = server.Close() // cuts the requests that are left
		}
	})
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		s.log.Error("the simulated nodes no longer answer kubectl logs", "err", err)
	}
	<-stopped
}

func (s *kubeletServer) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", s.logs)
	for path, command := range map[string]string{
		"/exec/{namespace}/{pod}/{container}":         "exec",
		"/exec/{namespace}/{pod}/{uid}/{container}":   "exec",
		"/attach/{namespace}/{pod}/{container}":       "attach",
		"/attach/{namespace}/{pod}/{uid}/{container}": "attach",
		"/portForward/{namespace}/{pod}":              "port-forward",
		"/portForward/{namespace}/{pod}/{uid}":        "port-forward",
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) { s.refuse(w, r, command) })
	}
	return mux
}

// logs answers kubectl logs.
func (s *kubeletServer) logs(w http.ResponseWriter, r *http.Request) {
	request, err := parseLogQuery(r.URL.Query(), s.now())
	if err != nil {
		fail(w, err)
		return
	}
	request.pod, request.container = podOf(r), r.PathValue("container")
	log, err := s.store.findLog(request)
	if err != nil {
		fail(w, err)
		return
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	out := &logWriter{logRequest: request, out: w, flush: http.NewResponseController(w).Flush}
	if err := out.write(r.Context(), func() view { return s.store.readLog(log) }); err != nil {
		s.log.Debug("a log was not sent to its end", "pod", request.pod.String(), "container", request.container, "err", err)
	}
}

// refuse answers what needs a process, which no simulated container has. kubectl
// shows the message of a Status.
func (s *kubeletServer) refuse(w http.ResponseWriter, r *http.Request, command string) {
	node, err := s.store.nodeOf(podOf(r))
	if err == nil {
		err = &refusal{code: http.StatusNotImplemented, message: fmt.Sprintf(
			"node %s is simulated and runs no containers: kubectl %s is not possible; kubectl logs shows what a container went through", node, command)}
	}
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"},
		Status:   metav1.StatusFailure,
		Message:  err.Error(),
		Code:     int32(codeOf(err)),
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(codeOf(err))
	_ = json.NewEncoder(w).Encode(status) // the client may be gone
}

func podOf(r *http.Request) types.NamespacedName {
	return types.NamespacedName{Namespace: r.PathValue("namespace"), Name: r.PathValue("pod")}
}

// fail answers with a text, as a kubelet does.
func fail(w http.ResponseWriter, err error) { http.Error(w, err.Error(), codeOf(err)) }

func codeOf(err error) int {
	if r, ok := errors.AsType[*refusal](err); ok {
		return r.code
	}
	return http.StatusInternalServerError
}
