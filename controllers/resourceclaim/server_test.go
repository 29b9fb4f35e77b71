// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package resourceclaim

import (
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/internal/managertest"
)

var shared = controlplanetest.Shared{}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// TestServerClaimsAreRightAtEveryVersionOfARandomHistory has a real server, which validates what the
// controller writes and refuses what is out of date. Watches lag, and the process is killed while
// it works.
func TestServerClaimsAreRightAtEveryVersionOfARandomHistory(t *testing.T) {
	const rounds, steps = 5, 20
	cluster := shared.Get(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	h := &history{
		t: t, in: cluster.Namespace(t), random: rand.New(rand.NewPCG(seed, 5)), done: ended{uids: map[types.UID]bool{}},
		pods: client.For[*corev1.Pod](cluster.Client), claims: client.For[*resourcev1.ResourceClaim](cluster.Client),
	}
	devs := template("devs")
	devs.Namespace = h.in
	_, err := client.For[*resourcev1.ResourceClaimTemplate](cluster.Client).Create(t.Context(), devs)
	check(t, err)
	_, err = h.claims.Create(t.Context(), &resourcev1.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: h.in, Name: "shared"}, Spec: devs.Spec.Spec})
	check(t, err)
	h.watch(managertest.Run(t, cluster.Config))

	config := rest.CopyConfig(cluster.Restricted(t, Rights()))
	turns := &turns{random: rand.New(rand.NewPCG(seed, 7))}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &late{next, turns} })
	start := func() *managertest.Process {
		return managertest.Run(t, config, managertest.Making(New, Defaults()))
	}
	p := start()
	writes := 0
	for range rounds {
		for range steps {
			h.step()
		}
		writes += len(p.Writes())
		p.Kill() // it is behind, and has most of its work before it
		p = start()
		for range steps {
			h.step()
		}
		h.settle()
	}
	if writes += len(p.Writes()); writes < rounds*steps {
		t.Errorf("%d writes for %d steps show little", writes, 2*rounds*steps)
	}
	t.Logf("%d writes, %d processes were killed", writes, rounds)
}

// settle waits until everything is as it must be when nothing happens any more.
func (h *history) settle() {
	h.t.Helper()
	missing := ""
	defer func() {
		if missing != "" {
			h.t.Log(missing)
		}
	}()
	controlplanetest.Eventually(h.t, "the claims of all Pods are as they must be", func() bool {
		h.collect()
		missing = h.missing()
		return missing == ""
	})
}

// turns are random waits, for requests that ask at the same time.
type turns struct {
	mu     sync.Mutex
	random *rand.Rand
}

func (t *turns) next() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return time.Duration(t.random.IntN(60)) * time.Millisecond
}

// late delivers what watches send late, each part by a wait of its own.
type late struct {
	next http.RoundTripper
	*turns
}

func (l *late) RoundTrip(r *http.Request) (*http.Response, error) {
	answer, err := l.next.RoundTrip(r)
	if err == nil && r.URL.Query().Has("watch") {
		answer.Body = &lateBody{answer.Body, l.turns}
	}
	return answer, err
}

type lateBody struct {
	io.ReadCloser
	*turns
}

func (b *lateBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	time.Sleep(b.turns.next()) // a slow network
	return n, err
}
