// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manager_test

import (
	"crypto/tls"
	"crypto/x509/pkix"
	"net/http"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/internal/controlplanetest"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/manager/serving"
	"github.com/setpoint-io/setpoint/object"
)

// clusterAuthority is the one that the API server of a cluster believes.
func clusterAuthority(t *testing.T, cluster *controlplanetest.Cluster) *authority {
	t.Helper()
	files := cluster.Endpoints()
	pair, err := tls.LoadX509KeyPair(files.CAFile, files.CAKeyFile)
	if err != nil {
		t.Fatal(err)
	}
	a := &authority{cert: pair.Leaf}
	a.key = pair.PrivateKey
	return a
}

// The manager has the rights that it declares and no others. The roles of the
// cluster say which user may see what.
func TestInAClusterCertificatesOfItsAuthorityAreBelievedAndItsRolesSayWhoSeesWhat(t *testing.T) {
	cluster := controlplanetest.Start(t, controlplanetest.Options{})
	config := cluster.Restricted(t, slices.Concat(serving.Rights(), serving.LookupRights(), []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list", "watch"}},
	}))
	l := listen(t)
	m := broken(t, config, manager.Serve(l, serving.Options{Authentication: serving.Authentication{Lookup: serving.NeedLookup}}))
	recordARollout(m.Runs())
	run(t, m)
	base := "https://" + l.Addr().String()
	waitFor(t, "the manager to be ready", func() bool { code, _ := ask(t, base+"/readyz", ""); return code == http.StatusOK })

	for _, args := range [][]string{
		{"create", "clusterrole", "scraper", "--verb=get", "--non-resource-url=/metrics"},
		{"create", "clusterrolebinding", "scraper", "--clusterrole=scraper", "--group=monitoring", "--serviceaccount=default:scraper"},
		{"create", "serviceaccount", "scraper"},
	} {
		if _, err := cluster.Kubectl(args...); err != nil {
			t.Fatal(err)
		}
	}
	token, err := cluster.Kubectl("create", "token", "scraper")
	if err != nil {
		t.Fatal(err)
	}
	bearer := map[string]string{"Authorization": "Bearer " + strings.TrimSpace(token)}
	ours, other := clusterAuthority(t, cluster), newAuthority(t, "other")
	stranger := caller{cert: other.sign(t, watcher, nil)}
	for _, test := range []struct {
		name, path string
		caller     caller
		code       int
		says       string
	}{
		{"one of a group that may", "/metrics", caller{cert: ours.sign(t, watcher, nil)}, http.StatusOK, "workqueue_depth"},
		{"what it may not see", "/debug/controllers", caller{cert: ours.sign(t, watcher, nil)}, http.StatusForbidden, `User "prometheus" cannot get path "/debug/controllers"`},
		{"one of no group", "/metrics", caller{cert: ours.sign(t, pkix.Name{CommonName: "jane"}, nil)}, http.StatusForbidden, `User "jane" cannot get path`},
		{"runs that it may not see", "/debug/runs", caller{cert: ours.sign(t, watcher, nil)}, http.StatusForbidden, `User "prometheus" cannot get path "/debug/runs"`},
		{"an administrator", "/debug/controllers", caller{cert: ours.sign(t, pkix.Name{CommonName: "root", Organization: []string{"system:masters"}}, nil)}, http.StatusOK, "breaking"},
		{"of another authority", "/metrics", stranger, http.StatusUnauthorized, "signed by unknown authority"},
		{"of another authority, with a token", "/metrics", caller{stranger.cert, bearer}, http.StatusOK, "workqueue_depth"},
		{"a token", "/metrics", caller{headers: bearer}, http.StatusOK, "workqueue_depth"},
		{"a forged token", "/metrics", caller{headers: map[string]string{"Authorization": "Bearer sesame"}}, http.StatusUnauthorized, "does not know this token"},
		{"nothing", "/metrics", caller{}, http.StatusUnauthorized, "or a client certificate"},
	} {
		waitFor(t, test.name+" to be judged right", func() bool {
			code, text := test.caller.get(t, base+test.path)
			if code == test.code && strings.Contains(text, test.says) {
				return true
			}
			if code != http.StatusForbidden || test.code != http.StatusOK { // roles take a moment
				t.Fatalf("%s: %d %.300s, want %d with %q", test.name, code, text, test.code, test.says)
			}
			return false
		})
	}

	checkRightsInACluster(t, cluster, base, ours)

	// What API servers publish later counts without a restart.
	maps := client.For[*corev1.ConfigMap](cluster.Client)
	key := object.Key{Namespace: "kube-system", Name: "extension-apiserver-authentication"}
	published, err := maps.Get(t.Context(), key)
	if err != nil {
		t.Fatal(err)
	}
	change, err := client.MergePatch(map[string]any{"data": map[string]string{"client-ca-file": published.Data["client-ca-file"] + other.pem}})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := maps.Patch(t.Context(), key, change); err != nil {
		t.Fatal(err)
	}
	waitFor(t, "the authority that is published since then", func() bool { code, _ := stranger.get(t, base+"/metrics"); return code == http.StatusOK })
}
