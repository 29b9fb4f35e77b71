// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package endtoend_test

import (
	"context"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controllers/deployment"
	"github.com/setpoint-io/setpoint/controllers/endpoints"
	"github.com/setpoint-io/setpoint/controllers/endpointslice"
	"github.com/setpoint-io/setpoint/controllers/endpointslicemirroring"
	"github.com/setpoint-io/setpoint/controllers/replicaset"
	"github.com/setpoint-io/setpoint/controllers/replicationcontroller"
	"github.com/setpoint-io/setpoint/controllers/rootcapublisher"
	"github.com/setpoint-io/setpoint/controllers/serviceaccount"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/internal/managertest"
	"github.com/setpoint-io/setpoint/object"
)

// undertaker deletes the namespace of a test when something is about to be created
// there. It stays: nobody finalizes it.
type undertaker struct {
	*cluster
	pattern *regexp.Regexp // of the path of what is created
	once    sync.Once

	mu      sync.Mutex
	created int // what got through all the same
	refused int
}

func (u *undertaker) wrap(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) {
		if r.Method != http.MethodPost || !u.pattern.MatchString(r.URL.Path) {
			return next.RoundTrip(r)
		}
		u.once.Do(func() {
			if err := u.close(context.WithoutCancel(r.Context())); err != nil {
				u.t.Error(err)
			}
		})
		response, err := next.RoundTrip(r)
		u.mu.Lock()
		defer u.mu.Unlock()
		if err == nil && response.StatusCode == http.StatusForbidden {
			u.refused++
		} else {
			u.created++
		}
		return response, err
	})
}

// close deletes the namespace, and returns when the server's admission knows of it.
func (u *undertaker) close(ctx context.Context) error {
	if err := client.For[*corev1.Namespace](u.Client).Delete(ctx, object.Key{Name: u.namespace}); err != nil {
		return err
	}
	for {
		_, err := client.For[*corev1.ConfigMap](u.Client).Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: u.namespace, GenerateName: "probe-"}})
		if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func (u *undertaker) counts() (created, refused int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.created, u.refused
}

// In a namespace that terminates nothing can be created, and nobody waits for it: that is
// said nowhere, and not tried again.
func TestWhatCannotBeCreatedBecauseTheNamespaceTerminatesIsNoFailure(t *testing.T) {
	const set = `{"apiVersion": "%s", "kind": "%s", "metadata": {"name": "web"}, "spec": {"replicas": 1, "selector": %s,
		"template": {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "main", "image": "web"}]}}}}`
	const service = `{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web"}, "spec": {"selector": %s, "ports": [{"port": 80}]}}`
	for _, test := range []struct {
		controller managertest.Make
		name       string
		path       string
		manifests  []string
	}{
		{
			managertest.Making(deployment.New, deployment.Defaults()), deployment.Name, "/replicasets",
			[]string{fmt.Sprintf(set, "apps/v1", "Deployment", `{"matchLabels": {"app": "web"}}`)},
		}, {
			managertest.Making(replicaset.New, replicaset.Defaults()), replicaset.Name, "/pods",
			[]string{fmt.Sprintf(set, "apps/v1", "ReplicaSet", `{"matchLabels": {"app": "web"}}`)},
		}, {
			managertest.Making(replicationcontroller.New, replicationcontroller.Defaults()), replicationcontroller.Name, "/pods",
			[]string{fmt.Sprintf(set, "v1", "ReplicationController", `{"app": "web"}`)},
		}, {
			managertest.Making(endpoints.New, endpoints.Defaults()), endpoints.Name, "/endpoints",
			[]string{fmt.Sprintf(service, `{"app": "web"}`)},
		}, {
			managertest.Making(endpointslice.New, endpointslice.Defaults()), endpointslice.Name, "/endpointslices",
			[]string{fmt.Sprintf(service, `{"app": "web"}`)},
		}, {
			managertest.Making(endpointslicemirroring.New, endpointslicemirroring.Defaults()), endpointslicemirroring.Name, "/endpointslices",
			[]string{
				fmt.Sprintf(service, `{}`),
				`{"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "web"}, "subsets": [{"addresses": [{"ip": "192.0.2.1"}], "ports": [{"port": 80}]}]}`,
			},
		},
		// These two act on namespaces themselves.
		{managertest.Making(serviceaccount.New, serviceaccount.Defaults()), serviceaccount.Name, "/serviceaccounts", nil},
		{managertest.Making(rootcapublisher.New, rootcapublisher.Options{Workers: 1, RootCA: []byte("a")}), rootcapublisher.Name, "/configmaps", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := &cluster{Cluster: shared.Get(t), t: t}
			c.namespace = c.Namespace(t)
			if test.name == serviceaccount.Name {
				c.kubectl("delete", "serviceaccount", "default")
			}
			for _, text := range test.manifests {
				c.manifest(text)
			}
			u := &undertaker{cluster: c, pattern: regexp.MustCompile("/" + c.namespace + test.path + "$")}
			config := rest.CopyConfig(c.Config)
			config.Wrap(u.wrap)
			p := managertest.Run(t, config, test.controller)
			controlplanetest.Eventually(t, "a refusal", func() bool { _, refused := u.counts(); return refused > 0 })
			p.Stop()
			created, refused := u.counts()
			// Its own write of a status is a reason to look once more.
			if created > 0 || refused > 2 {
				t.Errorf("%d were created, and %d refused; want at most two refusals", created, refused)
			}
			for _, line := range p.Warnings() {
				if strings.Contains(line, c.namespace) {
					t.Errorf("the log says: %s", line)
				}
			}
		})
	}
}
