// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

func configMap(name string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name}, Data: map[string]string{"a": "b"}}
}

func TestTwoServersOnOneEtcdSeeEachOthersWrites(t *testing.T) {
	cp := sharedControlPlane(t)
	first, second := client(t, cp.ServerConfig(0)), client(t, cp.ServerConfig(1))
	if _, err := first.CoreV1().ConfigMaps("default").Create(t.Context(), configMap("shared"), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := second.CoreV1().ConfigMaps("default").Get(t.Context(), "shared", metav1.GetOptions{}); err != nil {
		t.Errorf("the second server does not see what was written through the first: %v", err)
	}
	if err := second.CoreV1().ConfigMaps("default").Delete(t.Context(), "shared", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := first.CoreV1().ConfigMaps("default").Get(t.Context(), "shared", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the first server answers %v for what was deleted through the second", err)
	}
}

func TestAnonymousIsRefused(t *testing.T) {
	cp := sharedControlPlane(t)
	anonymous := client(t, rest.AnonymousClientConfig(cp.AdminConfig()))
	_, err := anonymous.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("listing namespaces without a certificate: %v, want Forbidden", err)
	}
}

func TestUserMayDoWhatRBACGrants(t *testing.T) {
	cp := sharedControlPlane(t)
	// The authorizer may know a grant for a moment after it was taken back: an earlier
	// run's must not be for this one's group.
	group := fmt.Sprintf("readers-%d", time.Now().UnixNano())
	config, err := cp.UserConfig("jane", group)
	if err != nil {
		t.Fatal(err)
	}
	jane := client(t, config)
	if _, err := jane.CoreV1().Secrets("default").List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Fatalf("before the grant: %v, want Forbidden", err)
	}
	admin := client(t, cp.AdminConfig())
	binding := &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "readers"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: group}},
		// Not "admin": controllers, which do not run here, fill that one.
		RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", APIGroup: rbacv1.GroupName, Name: "cluster-admin"},
	}
	if _, err := admin.RbacV1().RoleBindings("default").Create(t.Context(), binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := admin.RbacV1().RoleBindings("default").Delete(context.WithoutCancel(t.Context()), "readers", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	eventually(t, func() error { // the authorizer learns of the binding through a watch
		_, err := jane.CoreV1().Pods("default").List(t.Context(), metav1.ListOptions{})
		return err
	})
}

func TestKubeconfigWorksAndIsForItsOwnerAlone(t *testing.T) {
	cp := sharedControlPlane(t)
	info, err := os.Stat(cp.KubeconfigFile())
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the kubeconfig has mode %v, want 0600", info.Mode().Perm())
	}
	for _, context := range []string{"setpoint", "setpoint-1"} {
		config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(
			&clientcmd.ClientConfigLoadingRules{ExplicitPath: cp.KubeconfigFile()},
			&clientcmd.ConfigOverrides{CurrentContext: context},
		).ClientConfig()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := client(t, config).CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
			t.Errorf("with context %s: %v", context, err)
		}
	}
}

func TestFilesAreForTheirOwnerAlone(t *testing.T) {
	cp := sharedControlPlane(t)
	err := filepath.WalkDir(cp.DataDir(), func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		// A socket's own mode does not matter in a closed directory.
		if info, err := d.Info(); err != nil {
			return err
		} else if info.Mode().Type() != fs.ModeSocket && info.Mode().Perm()&0o077 != 0 {
			t.Errorf("%s has mode %v", path, info.Mode())
		}
		return nil
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) { // etcd renames files while it runs
		t.Error(err)
	}
}

func TestEtcdListensOnNoPort(t *testing.T) {
	cp := sharedControlPlane(t)
	if !strings.HasPrefix(cp.etcd.endpoint, "unix://") {
		t.Errorf("etcd's endpoint is %s, want a unix socket", cp.etcd.endpoint)
	}
	if n := len(cp.etcd.server.Peers); n != 0 {
		t.Errorf("etcd has %d peer listeners, want none", n)
	}
}

func TestSchedulerBindsPodToReadyNode(t *testing.T) {
	cp := sharedControlPlane(t)
	admin := client(t, cp.AdminConfig())
	ctx := t.Context()
	t.Cleanup(func() { // the control plane is shared
		ctx, now := context.WithoutCancel(ctx), metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))}
		_ = admin.CoreV1().Pods("default").Delete(ctx, "web", now)
		_ = admin.CoreV1().Nodes().Delete(ctx, "ready", now)
		_ = admin.CoreV1().ServiceAccounts("default").Delete(ctx, "default", now)
	})
	// What the controllers of a controller manager do in a whole cluster: make
	// the account that admission asks for, and lift the taint of a new Node.
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}
	if _, err := admin.CoreV1().ServiceAccounts("default").Create(ctx, account, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "ready"},
		Status: corev1.NodeStatus{
			Capacity: corev1.ResourceList{
				corev1.ResourceCPU:    resource.MustParse("1"),
				corev1.ResourceMemory: resource.MustParse("1Gi"),
				corev1.ResourcePods:   resource.MustParse("10"),
			},
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}},
		},
	}
	node, err := admin.CoreV1().Nodes().Create(ctx, node, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(node.Spec.Taints) == 0 {
		t.Error("a new Node has no taint: is the admission plugin TaintNodesByCondition off?")
	}
	node.Spec.Taints = nil
	if _, err := admin.CoreV1().Nodes().Update(ctx, node, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx"}}},
	}
	if _, err := admin.CoreV1().Pods("default").Create(ctx, pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	eventually(t, func() error {
		bound, err := admin.CoreV1().Pods("default").Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			return err
		}
		if bound.Spec.NodeName != "ready" {
			return fmt.Errorf("the Pod is bound to %q: %v", bound.Spec.NodeName, bound.Status.Conditions)
		}
		return nil
	})
}

func TestAdmissionRefusesPodWithoutServiceAccount(t *testing.T) {
	cp := sharedControlPlane(t)
	admin := client(t, cp.AdminConfig())
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "nginx"}}},
	}
	_, err := admin.CoreV1().Pods("kube-public").Create(t.Context(), pod, metav1.CreateOptions{})
	if !apierrors.IsForbidden(err) {
		t.Errorf("creating a Pod without a ServiceAccount: %v, want Forbidden", err)
	}
}

func TestOneServerStopsAndStartsAgainAtItsAddress(t *testing.T) {
	cp := sharedControlPlane(t)
	first, second := client(t, cp.ServerConfig(0)), client(t, cp.ServerConfig(1))
	ctx, cancel := context.WithTimeout(t.Context(), deadline)
	defer cancel()

	w, err := second.CoreV1().ConfigMaps("default").Watch(ctx, metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Stop()
	if err := cp.StopServer(ctx, 1); err != nil {
		t.Fatal(err)
	}
	for range w.ResultChan() { // ends, because the server has
	}
	if _, err := net.Dial("tcp", strings.TrimPrefix(cp.ServerURLs()[1], "https://")); err == nil {
		t.Error("the stopped server still accepts connections")
	}
	if _, err := first.CoreV1().ConfigMaps("default").Create(ctx, configMap("meanwhile"), metav1.CreateOptions{}); err != nil {
		t.Errorf("the other server does not work: %v", err)
	}
	if err := cp.StartServer(ctx, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := second.CoreV1().ConfigMaps("default").Get(ctx, "meanwhile", metav1.GetOptions{}); err != nil {
		t.Errorf("after the restart: %v", err)
	}
	if err := cp.Err(); err != nil {
		t.Errorf("the control plane thinks that it ended: %v", err)
	}
	if err := first.CoreV1().ConfigMaps("default").Delete(ctx, "meanwhile", metav1.DeleteOptions{}); err != nil {
		t.Error(err)
	}
}

func TestPublishedServiceAccountKeysCarryTheIssuer(t *testing.T) {
	cp := sharedControlPlane(t)
	h, err := rest.HTTPClientFor(cp.AdminConfig())
	if err != nil {
		t.Fatal(err)
	}
	defer h.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, cp.ServerURLs()[0]+"/.well-known/openid-configuration", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := h.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{serviceIssuer, "ES256"} {
		if !strings.Contains(string(body), want) {
			t.Errorf("the issuer's document lacks %s: %s", want, body)
		}
	}
}
