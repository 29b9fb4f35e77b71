// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package nodes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/setpoint-io/setpoint/controlplane/internal/loopback"
)

// serverAddress is where the server of the simulated nodes listens. It is the
// InternalDNS address of each of them: their InternalIP is one that Pods with
// hostNetwork share, and Endpoints refuse loopback addresses.
const serverAddress = loopback.Address

// kubeletServer is the part of a kubelet's API behind kubectl logs, exec, attach and
// port-forward, for all simulated Nodes: a Pod's name leads to its Node.
type kubeletServer struct {
	store *store
	log   *slog.Logger
	now   func() time.Time
}

// serve answers until ctx ends, and returns when no request is under way.
func (s *kubeletServer) serve(ctx context.Context, l net.Listener) {
	if err := loopback.Serve(ctx, l, s.handler(), s.log); err != nil {
		s.log.Error("the simulated nodes no longer answer kubectl logs", "err", err)
	}
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
