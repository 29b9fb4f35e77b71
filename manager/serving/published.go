// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package serving

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/setpoint-io/setpoint/cache"
	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/object"
)

// authenticationConfigMap is where API servers publish the authorities whose certificates count.
// Source: k8s.io/kubernetes/pkg/controlplane/controller/clusterauthenticationtrust.
var authenticationConfigMap = object.Key{Namespace: metav1.NamespaceSystem, Name: "extension-apiserver-authentication"}

// Its keys. Those of headers and names hold lists in JSON.
const (
	clientCAKey      = "client-ca-file"
	proxyCAKey       = "requestheader-client-ca-file"
	allowedNamesKey  = "requestheader-allowed-names"
	usernameKey      = "requestheader-username-headers"
	uidKey           = "requestheader-uid-headers"
	groupKey         = "requestheader-group-headers"
	extraPrefixesKey = "requestheader-extra-headers-prefix"
)

// LookupRights returns the rights that a process needs in kube-system for [Authentication.Lookup]. Upstream's Role extension-apiserver-authentication-reader
// allows the same.
func LookupRights() []rbacv1.PolicyRule {
	return []rbacv1.PolicyRule{{
		APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{authenticationConfigMap.Name},
		Verbs: []string{"get", "list", "watch"},
	}}
}

// published has the ConfigMap, kept current by an informer.
type published struct {
	client   *client.Client
	factory  *cache.Factory
	informer cache.SharedInformer[*corev1.ConfigMap]
	needed   bool // from the start
}

func newPublished(c *client.Client, log *slog.Logger, needed bool) *published {
	f := cache.NewFactory(c, log)
	return &published{client: c, factory: f, needed: needed, informer: cache.Informer[*corev1.ConfigMap](f,
		cache.InNamespace(authenticationConfigMap.Namespace),
		cache.WithFields(fields.OneTermEqualSelector("metadata.name", authenticationConfigMap.Name).String()))}
}

// check returns an error if the ConfigMap is needed and cannot be read.
func (p *published) check(ctx context.Context) error {
	if !p.needed {
		return nil
	}
	_, err := client.For[*corev1.ConfigMap](p.client).Get(ctx, authenticationConfigMap)
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("looking up who is believed when asking for metrics: configmap %s: %w", authenticationConfigMap, err)
	}
	return nil
}

// value returns the value of a key, nothing while the ConfigMap or the key does not exist.
func (p *published) value(key string) ([]byte, error) {
	configMap, err := p.informer.Get(authenticationConfigMap)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("configmap %s: %w", authenticationConfigMap, err)
	}
	return []byte(configMap.Data[key]), nil
}

// headers returns the headers in which proxies name users. A list that cannot be read is an
// error, so that no proxy counts.
func (p *published) headers() (RequestHeader, error) {
	var h RequestHeader
	var errs []error
	for key, into := range map[string]*[]string{
		allowedNamesKey: &h.AllowedNames, usernameKey: &h.UsernameHeaders, uidKey: &h.UIDHeaders,
		groupKey: &h.GroupHeaders, extraPrefixesKey: &h.ExtraHeaderPrefixes,
	} {
		text, err := p.value(key)
		if err == nil && len(text) > 0 {
			err = json.Unmarshal(text, into)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("%s of configmap %s: %w", key, authenticationConfigMap, err))
		}
	}
	return h, errors.Join(errs...)
}
