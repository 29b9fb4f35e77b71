// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/controllers/csrsigning"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/runs"
)

var shared = controlplanetest.Shared{}

func TestMain(m *testing.M) { os.Exit(shared.Main(m)) }

// text is a log that may be read while it is written.
type text struct {
	mu   sync.Mutex
	text strings.Builder
}

func (l *text) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *text) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// Each controller is started alone, as the account of its manifest and nothing more.
func TestEveryControllerStartsAloneWithTheManifestOfItsRightsAndNothingMore(t *testing.T) {
	cluster := shared.Get(t)
	files := cluster.Endpoints()
	known := controllers.Cluster{Signing: map[string]controllers.KeyFiles{}}
	for _, signer := range csrsigning.Signers() {
		known.Signing[signer] = controllers.KeyFiles{Cert: files.CAFile, Key: files.CAKeyFile}
	}
	var err error
	if known.ServiceAccountKey, err = os.ReadFile(files.ServiceAccountKeyFile); err != nil {
		t.Fatal(err)
	}
	if known.RootCA, err = os.ReadFile(files.CAFile); err != nil {
		t.Fatal(err)
	}
	for _, d := range Known() {
		t.Run(d.Name, func(t *testing.T) {
			config := as(t, cluster, d)
			log := &text{}
			mgr, err := manager.New(config, manager.Log(slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))))
			if err != nil {
				t.Fatal(err)
			}
			d.Learn(known)
			switchOn(t, d)
			c, err := d.New(mgr)
			if err != nil {
				t.Fatal(err)
			}
			if err := mgr.Add(c); err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			ended := make(chan error, 1)
			go func() { ended <- mgr.Run(ctx) }()
			if gate, _ := d.Closed(); gate == "" { // the API of a gate that is off is not served
				awaitSync(t, mgr, log)
			}
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			for line := range strings.Lines(log.String()) {
				if strings.Contains(line, "forbidden") || strings.Contains(line, "lack a right") {
					t.Errorf("it lacks a right: %s", line)
				}
			}
		})
	}
}

// as makes what the manifest of a controller says, and connects as its account, with a
// token, once it has its rights. The account is none that upstream has: to those the
// server gives rights of its own.
func as(t *testing.T, cluster *controlplanetest.Cluster, d *controllers.Descriptor) *rest.Config {
	t.Helper()
	objects, err := RBAC([]*controllers.Descriptor{d}, object.Key{Namespace: cluster.Namespace(t), Name: "alone"})
	if err != nil {
		t.Fatal(err)
	}
	var account object.Key
	for _, o := range objects {
		switch o := o.(type) {
		case *corev1.ServiceAccount:
			account = object.KeyOf(o)
			create(t, cluster, o)
		case *rbacv1.ClusterRole:
			create(t, cluster, o)
		case *rbacv1.ClusterRoleBinding:
			create(t, cluster, o)
		case *rbacv1.Role:
			create(t, cluster, o)
		case *rbacv1.RoleBinding:
			create(t, cluster, o)
		}
	}
	token, err := cluster.Kubectl("create", "token", account.Name, "-n", account.Namespace)
	if err != nil {
		t.Fatal(err)
	}
	config := rest.AnonymousClientConfig(cluster.Config)
	config.BearerToken = strings.TrimSpace(token)
	for namespace, rules := range d.Rights() {
		cluster.AwaitRightsIn(t, config, namespace, rules)
	}
	return config
}

// create makes an object for as long as the test: its name is the same in each.
func create[T object.Object](t *testing.T, cluster *controlplanetest.Cluster, o T) {
	t.Helper()
	of := client.For[T](cluster.Client)
	if _, err := of.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := of.Delete(context.WithoutCancel(t.Context()), object.KeyOf(o)); err != nil {
			t.Error(err)
		}
	})
}

// awaitSync waits until all informers of a manager have had a first state, or until the controller
// has run if it has none.
func awaitSync(t *testing.T, mgr *manager.Manager, log *text) {
	t.Helper()
	for end := time.Now().Add(controlplanetest.Patience); ; time.Sleep(10 * time.Millisecond) {
		missing := ""
		all := mgr.InformerFactory().Status()
		for _, informer := range all {
			if !informer.Synced {
				missing = informer.Kind
			}
		}
		ran, _ := mgr.Runs().Find(runs.Query{}) // of a controller that lists and watches nothing
		if missing == "" && len(all)+len(ran) > 0 {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("%d informers, among them that of %s without a first state; the log: %s", len(all), missing, log)
		}
	}
}
