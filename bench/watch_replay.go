// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
	"github.com/setpoint-io/setpoint/watch/event"
)

// replayed is a server in this process with TLS and HTTP/2, for rounds in which a control plane would take most of the machine:
// it costs little, and what a watch costs for a change hardly depends on what else runs. It changes Pods
// as a control plane with 32 clients does: an image, an annotation, and the entry of their writer in managedFields.
type replayed struct {
	api    *fakeapi.Server
	pods   *fakeapi.Resource
	server *httptest.Server
	dir    string
}

func newReplayed(size int) (*replayed, error) {
	dir, err := os.MkdirTemp("", "setpoint-bench-")
	if err != nil {
		return nil, err
	}
	r := &replayed{api: fakeapi.New(), dir: dir}
	r.pods = r.api.Serve(podKind.resource)
	for i := range size {
		if err := r.pods.Add(pod(i)); err != nil {
			return nil, err
		}
	}
	r.server = httptest.NewUnstartedServer(r.api)
	r.server.EnableHTTP2 = true
	r.server.StartTLS()
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.server.Certificate().Raw})
	config := clientcmdapi.NewConfig()
	config.Clusters["c"] = &clientcmdapi.Cluster{Server: r.server.URL, CertificateAuthorityData: certificate}
	config.AuthInfos["u"] = &clientcmdapi.AuthInfo{}
	config.Contexts["c"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
	config.CurrentContext = "c"
	return r, clientcmd.WriteToFile(*config, r.kubeconfig())
}

func (r *replayed) kubeconfig() string { return filepath.Join(r.dir, "kubeconfig") }

func (r *replayed) stop() error {
	r.api.Close()
	r.server.CloseClientConnections()
	r.server.Close()
	return os.RemoveAll(r.dir)
}

// change changes a Pod, and waits for nothing.
func (r *replayed) change(i, turn int, stamp string) error {
	p := pod(i)
	p.ResourceVersion = ""
	p.Generation = int64(turn + 2)
	p.Annotations[stampAnnotation] = stamp
	p.Spec.Containers[0].Image = "registry.example.com/app:" + stamp
	now := metav1.NewTime(time.Now().Truncate(time.Second))
	p.ManagedFields[0].Time = &now
	return r.pods.Put(p)
}

// runReplay measures each side alone.
func (b *watchBench) runReplay(ctx context.Context, out io.Writer, turn int) (err error) {
	r, err := newReplayed(b.pods)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.stop()) }()
	s := &scene{cluster: &cluster{dir: r.dir, kubeconfig: r.kubeconfig()}}
	for _, round := range []watchRound{{aloneRound, []string{setpointSide}}, {aloneRound, []string{kubewatchSide}}, {cursorRound, []string{setpointSide}}} {
		p := &watchPlay{watchBench: b, scene: s, round: round, out: out, turn: turn, replayed: r}
		l := newLedger(round.sides...)
		if err := p.playReplay(ctx, l); err != nil {
			return err
		}
	}
	return nil
}

func (p *watchPlay) playReplay(ctx context.Context, l *ledger) error {
	p.before, p.found = map[string]float64{}, map[string]readings{}
	defer func() {
		for _, w := range p.watchers {
			w.end()
		}
	}()
	if err := p.start(ctx, p.round.sides[0]); err != nil {
		return err
	}
	w := p.watchers[0]
	var err error
	if p.before[w.name], err = w.cpu(); err != nil {
		return err
	}
	w.ledger.Store(l)
	stop := p.profile(ctx)
	began := time.Now()
	n := 0
	err = pace(ctx, p.changes(), p.rate, func(int) error {
		i := n*7919%(p.pods-1) + 1
		n++
		now := time.Now()
		t := told{verb: event.Updated, key: object.KeyOf(pod(i)).String(), stamp: strconv.FormatInt(now.UnixNano(), 10)}
		l.send(t, now)
		err := p.replayed.change(i, n/(p.pods-1)+1, t.stamp)
		l.answer(t, err == nil, time.Now())
		return err
	})
	if err != nil {
		return err
	}
	fmt.Fprintf(p.out, "# %s: %d changes in %.1f s\n", p.round.name, n, time.Since(began).Seconds())
	ended := time.Now()
	err = poll(ctx, "all changes", func() (bool, error) {
		lost, moved := l.lost(w.name)
		if moved.Before(ended) {
			moved = ended
		}
		return len(lost) == 0 || time.Since(moved) > patience, w.well()
	})
	if err := errors.Join(err, stop()); err != nil {
		return err
	}
	if err := p.finish(ctx, w, l); err != nil {
		return err
	}
	key := p.round.name + " " + w.name
	p.results[key] = append(p.results[key], p.found[w.name])
	return nil
}
