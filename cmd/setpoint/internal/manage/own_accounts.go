// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manage

import (
	"context"
	"fmt"
	"net/http"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/client"
	"github.com/setpoint-io/setpoint/controller"
	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
)

// hosting says on what a controller is built.
type hosting func(*manager.Manager, *controllers.Descriptor) (controller.Host, error)

// together has all controllers work with the credentials of the process.
func together(m *manager.Manager, _ *controllers.Descriptor) (controller.Host, error) { return m, nil }

// tokenSeconds is how long a requested token is valid. Source:
// k8s.io/controller-manager/pkg/clientbuilder, defaultExpirationSeconds.
const tokenSeconds = 3600

// ownAccounts has each controller work, and record events, as its own service account. As
// upstream's, they share informers, which read with the credentials of the process.
func ownAccounts(config *rest.Config) hosting {
	return func(m *manager.Manager, d *controllers.Descriptor) (controller.Host, error) {
		own := rest.AnonymousClientConfig(config)
		own.UserAgent = rest.DefaultKubernetesUserAgent() + "/" + d.Account().Name
		tokens := &accountTokens{account: d.Account(), process: m.Client(), turn: make(chan struct{}, 1)}
		own.Wrap(tokens.wrap)
		if config.WrapTransport != nil {
			own.Wrap(config.WrapTransport)
		}
		host, err := m.As(own)
		if err != nil {
			return nil, fmt.Errorf("making the client of %s: %w", d.Name, err)
		}
		return host, nil
	}
}

// accountTokens has tokens of a service account, which it asks the server for. They are
// nowhere but in memory.
type accountTokens struct {
	account object.Key
	process *client.Client // may make accounts and their tokens

	turn  chan struct{} // has one element while a goroutine holds what follows
	token string
	until time.Time // when to request another one
}

func (t *accountTokens) wrap(next http.RoundTripper) http.RoundTripper {
	return &accountTransport{tokens: t, next: next}
}

// get returns a token that is good for some time.
func (t *accountTokens) get(ctx context.Context) (string, error) {
	select {
	case t.turn <- struct{}{}:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	defer func() { <-t.turn }()
	if t.token != "" && time.Now().Before(t.until) {
		return t.token, nil
	}
	// The requests of the process itself are no writes of the controller, whose record ctx has.
	ctx = detached{ctx}
	token, seconds, err := t.ask(ctx)
	if apierrors.IsNotFound(err) {
		if err = t.makeAccount(ctx); err == nil {
			token, seconds, err = t.ask(ctx)
		}
	}
	if err != nil {
		return "", fmt.Errorf("getting a token of the service account %s: %w", t.account, err)
	}
	// The local clock counts from now on, whatever it shows: a fifth of the time is left.
	// Source: k8s.io/controller-manager/pkg/clientbuilder, defaultLeewayPercent.
	t.token, t.until = token, time.Now().Add(time.Duration(seconds)*time.Second*4/5)
	return token, nil
}

// detached is a context without its values.
type detached struct{ context.Context }

// Value implements context.Context.
func (detached) Value(any) any { return nil }

// forget drops a token that the server did not accept.
func (t *accountTokens) forget(token string) {
	t.turn <- struct{}{}
	defer func() { <-t.turn }()
	if t.token == token {
		t.token = ""
	}
}

func (t *accountTokens) ask(ctx context.Context) (token string, seconds int64, err error) {
	granted, err := client.Sub[*authenticationv1.TokenRequest](client.For[*corev1.ServiceAccount](t.process), "token").
		Create(ctx, t.account, &authenticationv1.TokenRequest{
			Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: new(int64(tokenSeconds))},
		})
	if err != nil {
		return "", 0, err
	}
	if granted.Status.Token == "" {
		return "", 0, fmt.Errorf("%s answers without a token", t.process.Server())
	}
	seconds = tokenSeconds
	if granted.Spec.ExpirationSeconds != nil {
		seconds = *granted.Spec.ExpirationSeconds // the server may shorten it
	}
	return granted.Status.Token, seconds, nil
}

func (t *accountTokens) makeAccount(ctx context.Context) error {
	_, err := client.For[*corev1.ServiceAccount](t.process).Create(ctx, &corev1.ServiceAccount{
		ObjectMeta: metav1.ObjectMeta{Namespace: t.account.Namespace, Name: t.account.Name},
	})
	if apierrors.IsAlreadyExists(err) {
		return nil
	}
	return err
}

// accountTransport sends requests as a service account.
type accountTransport struct {
	tokens *accountTokens
	next   http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (a *accountTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	token, err := a.tokens.get(r.Context())
	if err != nil {
		if r.Body != nil {
			_ = r.Body.Close() // as a RoundTripper must
		}
		return nil, &client.NotSentError{Cause: err}
	}
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+token)
	response, err := a.next.RoundTrip(r)
	if err == nil && response.StatusCode == http.StatusUnauthorized {
		a.tokens.forget(token)
	}
	return response, err
}
