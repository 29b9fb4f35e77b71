// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package announce_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/announce"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/setpointtest/fakeapi"
)

func newClient(t *testing.T) (*fakeapi.Resource, *client.Client) {
	t.Helper()
	leases := fakeapi.New().Serve(object.Resource{Group: "coordination.k8s.io", Version: "v1", Plural: "leases", Kind: "Lease", Namespaced: true})
	c, err := client.New(leases.Config())
	if err != nil {
		t.Fatal(err)
	}
	return leases, c
}

// A user finds a manager by its Lease, and reaches the program that has the announced certificate and no other. The token
// of the user stays at home.
func TestAUserFindsTheManager(t *testing.T) {
	_, c := newClient(t)
	if _, err := announce.Find(t.Context(), c); !errors.Is(err, announce.ErrNone) {
		t.Fatalf("without a manager: %v", err)
	}
	var authorization string
	pages := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		authorization = r.Header.Get("Authorization")
		_, _ = io.WriteString(w, "the pages")
	}))
	defer pages.Close()
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- announce.New(c, pages.Listener.Addr(), slog.New(slog.DiscardHandler)).Run(ctx) }()
	var m announce.Manager
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		var err error
		if m, err = announce.Find(t.Context(), c); err == nil {
			break
		}
		if !errors.Is(err, announce.ErrNone) || time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
	stop()
	if err := <-ended; err != nil || m.URL != pages.URL || m.Holder == "" {
		t.Fatalf("the announcer ended with %v, and the manager is %+v, want it at %s", err, m, pages.URL)
	}
	text, err := get(t, m)
	if err != nil || text != "the pages" || authorization != "" {
		t.Errorf("the pages are %q, %v; the request had the credentials %q", text, err, authorization)
	}
	m.Fingerprint = strings.Repeat("0", 64)
	if _, err := get(t, m); err == nil || !strings.Contains(err.Error(), "the certificate is not the one of lease kube-system/setpoint-manager") {
		t.Errorf("another certificate: %v", err)
	}
}

func get(t *testing.T, m announce.Manager) (string, error) {
	t.Helper()
	pages, err := m.Client(&rest.Config{BearerToken: "secret"})
	if err != nil {
		t.Fatal(err)
	}
	response, err := pages.Get(m.URL)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(response.Body)
	return string(text), errors.Join(err, response.Body.Close())
}

// A manager with the account of kube-controller-manager may not write the Lease, and says nothing of it.
func TestAManagerWithoutTheRightIsQuiet(t *testing.T) {
	leases, c := newClient(t)
	asked := make(chan struct{}, 10)
	leases.Before(func(*fakeapi.Request) *metav1.Status {
		asked <- struct{}{}
		return &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden}
	})
	pages := httptest.NewTLSServer(http.NotFoundHandler())
	defer pages.Close()
	var log strings.Builder
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		ended <- announce.New(c, pages.Listener.Addr(), slog.New(slog.NewTextHandler(&log, nil))).Run(ctx)
	}()
	<-asked
	stop()
	if err := <-ended; err != nil || strings.Contains(log.String(), "Lease") || strings.Contains(log.String(), "lease") {
		t.Errorf("the announcer ended with %v and logged %q", err, log.String())
	}
}

// What a user of the cluster wrote into the Lease is no reason to connect anywhere without encryption.
func TestALeaseThatNamesNoManager(t *testing.T) {
	leases, c := newClient(t)
	for _, annotations := range []map[string]string{
		nil, {"setpoint.io/serves": "http://example.com", "setpoint.io/certificate": strings.Repeat("0", 64)},
		{"setpoint.io/serves": "https://example.com"}, {"setpoint.io/serves": "::", "setpoint.io/certificate": "x"},
	} {
		key := announce.Key()
		if err := leases.Put(&coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, Annotations: annotations}}); err != nil {
			t.Fatal(err)
		}
		if m, err := announce.Find(t.Context(), c); err == nil || errors.Is(err, announce.ErrNone) {
			t.Errorf("with the annotations %v the manager is %+v, %v", annotations, m, err)
		}
	}
}

// A user's manager announces itself on a Lease of its own. A user finds it beside the manager of the cluster, by the label.
func TestAUserFindsManagersOnOtherLeases(t *testing.T) {
	leases, c := newClient(t)
	if all, _, err := announce.FindAll(t.Context(), c); !errors.Is(err, announce.ErrNone) || len(all) != 0 {
		t.Fatalf("without a manager: %v, %v", all, err)
	}
	pages := httptest.NewTLSServer(http.NotFoundHandler())
	defer pages.Close()
	elected := object.Key{Namespace: "shop", Name: "operator"}
	holder := "operator-1"
	if err := leases.Put(&coordinationv1.Lease{
		ObjectMeta: metav1.ObjectMeta{Namespace: elected.Namespace, Name: elected.Name}, Spec: coordinationv1.LeaseSpec{HolderIdentity: &holder},
	}); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	log := slog.New(slog.DiscardHandler)
	go func() { ended <- announce.NewAt(c, elected, pages.Listener.Addr(), log).Run(ctx) }()
	go func() { ended <- announce.New(c, pages.Listener.Addr(), log).Run(ctx) }()
	var all []announce.Manager
	for deadline := time.Now().Add(time.Minute); len(all) < 2 && time.Now().Before(deadline); time.Sleep(time.Millisecond) {
		all, _, _ = announce.FindAll(t.Context(), c)
	}
	stop()
	if err := errors.Join(<-ended, <-ended); err != nil {
		t.Fatal(err)
	}
	if len(all) != 2 || all[0].Lease != announce.Key() || all[1].Lease != elected || all[1].URL != pages.URL || all[1].Holder != holder {
		t.Errorf("the managers are %+v, want that of the cluster and the one on lease %s, whose holder stays", all, elected)
	}
	leases.Before(func(r *fakeapi.Request) *metav1.Status {
		if r.Key.Name != "" {
			return nil
		}
		return &metav1.Status{Status: metav1.StatusFailure, Code: http.StatusForbidden, Reason: metav1.StatusReasonForbidden, Message: "it may not list"}
	})
	if all, unread, err := announce.FindAll(t.Context(), c); err != nil || len(all) != 1 || len(unread) != 1 || !strings.Contains(unread[0], "other Leases") {
		t.Errorf("a user who may not list Leases finds %+v, %q, %v", all, unread, err)
	}
}
