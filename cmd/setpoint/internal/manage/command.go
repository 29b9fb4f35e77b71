// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package manage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/controllers/registry"
	"github.com/setpoint-io/setpoint/internal/announce"
	"github.com/setpoint-io/setpoint/internal/cli"
	"github.com/setpoint-io/setpoint/internal/heap"
	"github.com/setpoint-io/setpoint/internal/processors"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
	"github.com/setpoint-io/setpoint/page"
)

// securePort is the one of kube-controller-manager.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager, KubeControllerManagerPort.
const securePort = 10257

// defaultLease is the one of kube-controller-manager: a manager of either kind stands by
// while one of the other works.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/app/options.
var defaultLease = object.Key{Namespace: "kube-system", Name: "kube-controller-manager"}

// command is the command line of "setpoint manager".
type command struct {
	w           *cli.World
	version     string
	log         cli.Logging
	target      cli.Target
	choice      []string
	keys        keyFiles
	elect       cli.Electing
	answer      cli.Answering
	known       authenticating
	tune        tuning
	limit       rateLimit
	much        verbosity
	own         bool
	file        configFile
	idle        idleFlags
	metrics     metricsFlags
	process     processFlags
	record      recordFlag
	decoded     decodedFlag
	migrate     leaderMigration
	format      logFormat
	encrypt     servingFlags
	contentType string
}

// Command returns "setpoint manager" of a version of setpoint.
func Command(w *cli.World, version string) *cobra.Command {
	m := &command{w: w, version: version, tune: tuning{known: registry.Known()}}
	c := &cobra.Command{
		Use:   "manager",
		Short: "Run the built-in controllers against a cluster",
		Long: `Run the built-in controllers against a cluster, until Ctrl-C or SIGTERM.

Of several managers one works, which holds a lease, and the others stand by; the
lease is that of kube-controller-manager, so where that runs, this one stands by.
With --leader-elect=false the cluster must run none of the controllers itself: two
managers that both act on Deployments work against each other. A server that cannot
be reached is waited for. A right that is missing is said once; the controllers that
lack nothing work meanwhile.

` + ControllerHelp(),
		Example: `  # against the cluster of your current kubeconfig
  setpoint manager

  # all controllers but one, saying what they do
  setpoint manager --kubeconfig ./my.kubeconfig --controllers '*,-deployment' -v`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error { return m.run(c) },
	}
	m.flags(c)
	cli.ExplainFlagErrors(c, nil)
	c.AddCommand(rbacCommand(w))
	return c
}

// flags adds the flags.
func (m *command) flags(c *cobra.Command) {
	m.target.Flags(c.Flags())
	m.target.ServerFlag(c.Flags())
	ControllersFlag(c, &m.choice)
	m.keys.flags(c.Flags())
	m.elect.Flags(c.Flags(), cli.LeaseDefaults{
		On: true, Key: defaultLease, Processes: "managers",
		About: "; the default is that of kube-controller-manager, so that one of both works",
	})
	m.answer.Flags(c.Flags(), securePort)
	m.log.Flags(c.Flags(), c)
	for _, flags := range []interface{ flags(*pflag.FlagSet) }{
		&m.known, &m.encrypt, &m.tune, &m.limit, &m.much, &m.file, &m.process, &m.record, &m.decoded, &m.migrate, &m.format, &m.metrics, &m.idle,
	} {
		flags.flags(c.Flags())
	}
	c.Flags().StringVar(&m.contentType, "kube-api-content-type", protobuf, "in which `form` built-in kinds travel: "+protobuf+" or application/json")
	c.Flags().BoolVar(&m.own, "use-service-account-credentials", false, "have each controller work as a service account of its own in kube-system, which is made if it is not there")
}

// run runs the manager until a signal ends it.
func (m *command) run(c *cobra.Command) error {
	if m.process.version.asked() {
		return sayVersion(m.w, m.version)
	}
	if err := m.file.apply(c.Flags()); err != nil {
		return err
	}
	chosen, err := registry.Select(m.tune.known, m.choice)
	if err != nil && !errors.Is(err, registry.ErrNothingSelected) {
		return err
	}
	log, err := m.logger()
	if err != nil {
		return err
	}
	mgr, run, err := m.build(c.Context(), chosen, log)
	if err != nil {
		return err
	}
	sayStopped(log, chosen, run, m.choice)
	sayWithoutController(log, chosen, run, m.choice)
	ctx, stop := m.w.UntilSignal(c.Context(), cli.Interruption{First: func() { log.Info("stopping") }, Second: func() {}})
	defer stop()
	defer heap.Tune(ctx)()
	defer processors.Tune(ctx, mgr.Elected())()
	log.Info("managing", "server", mgr.Client().Server(), "controllers", names(run))
	err = mgr.Run(ctx)
	log.Info("stopped")
	return err
}

// logger returns the logger of the flags, once their values have been checked.
func (m *command) logger() (*slog.Logger, error) {
	if err := cmp.Or(m.idle.check(), m.metrics.check(), m.tune.check(), m.limit.check(), m.format.into(&m.log)); err != nil {
		return nil, err
	}
	m.log.Verbosity = m.much.total()
	log, err := m.log.Logger(m.w, slog.LevelInfo)
	if err != nil {
		return nil, err
	}
	return slog.New(missingRights{log.Handler()}), nil
}

// build returns the manager of the flags, and the controllers that it runs.
func (m *command) build(ctx context.Context, chosen []*controllers.Descriptor, log *slog.Logger) (*manager.Manager, []*controllers.Descriptor, error) {
	config, err := connection(&m.target, &m.limit, m.contentType)
	if err != nil {
		return nil, nil, err
	}
	cluster, err := m.keys.cluster(config)
	if err != nil {
		return nil, nil, err
	}
	hosts := together
	if m.own {
		hosts = ownAccounts(config)
	}
	options, err := m.leading()
	if err != nil {
		return nil, nil, err
	}
	moving, err := m.migrate.of(chosen)
	if err != nil {
		return nil, nil, err
	}
	if len(options) > 0 { // else there is no lease at all
		options = append(options, moving.options(m.elect.Lease().Namespace)...)
	}
	serving, err := m.serving(ctx, log)
	if err != nil {
		return nil, nil, err
	}
	m.process.profile(m.answer.Profiles())
	sayIdle(log, &m.idle, &m.tune, m.choice, m.contentType, m.metrics.idle()...)
	options = slices.Concat(options, serving, m.process.options(), m.record.options(), m.decoded.options(), m.metrics.options(), Traces(m.w.Getenv, "setpoint-manager", log))
	mgr, run, err := newManager(config, running(moving.run), cluster, hosts, log, options...)
	if err == nil && len(serving) > 0 {
		err = page.Add(mgr)
	}
	if err != nil || m.answer.Served() == nil || m.record.bytes == 0 {
		return mgr, run, err
	}
	return mgr, run, mgr.Add(announce.NewAt(mgr.Client(), m.announcing(), m.answer.Served(), log))
}

// announcing returns the Lease on which the manager announces itself: that of the cluster's manager, or that of its own
// election if it has one of its own. Managers with a half of the controllers each do not then take each other's place.
func (m *command) announcing() object.Key {
	if lease := m.elect.Lease(); lease != defaultLease {
		return lease
	}
	return announce.Key()
}

// leading returns the options of the lease.
func (m *command) leading() ([]manager.Option, error) {
	options, err := m.elect.Options()
	if err == nil && !m.tune.gates[releaseOnExit] {
		options = append(options, manager.KeepLease())
	}
	return options, err
}

// serving returns the options of the ports.
func (m *command) serving(ctx context.Context, log *slog.Logger) ([]manager.Option, error) {
	if err := cmp.Or(m.known.into(&m.answer), m.encrypt.into(&m.answer)); err != nil {
		return nil, err
	}
	return m.answer.Options(ctx, log)
}

// connection is how the API server is reached: where, how often, and in which form.
func connection(t *cli.Target, limit *rateLimit, contentType string) (*rest.Config, error) {
	config, err := t.Config()
	if err != nil {
		return nil, err
	}
	limit.limit(config)
	if contentType == jsonForm {
		config.ContentType = jsonForm
	}
	return config, nil
}

// noArguments refuses arguments, except empty ones, which scripts leave behind.
func noArguments(c *cobra.Command, args []string) error {
	for _, arg := range args {
		if arg != "" {
			return fmt.Errorf("%q: %s takes flags alone", arg, c.CommandPath())
		}
	}
	return nil
}
