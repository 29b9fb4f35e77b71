// Copyright The Setpoint Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"github.com/setpoint-io/setpoint/controllers"
	"github.com/setpoint-io/setpoint/controllers/registry"
	"github.com/setpoint-io/setpoint/internal/cli"
	"github.com/setpoint-io/setpoint/manager"
	"github.com/setpoint-io/setpoint/object"
)

// securePort is the one of kube-controller-manager.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager, KubeControllerManagerPort.
const securePort = 10257

// defaultLease is the one of kube-controller-manager: a manager of either kind stands by
// while one of the other works.
// Source: k8s.io/kubernetes/cmd/kube-controller-manager/app/options.
var defaultLease = object.Key{Namespace: "kube-system", Name: "kube-controller-manager"}

func managerCommand(w *cli.World) *cobra.Command {
	var (
		l           cli.Logging
		t           cli.Target
		choice      []string
		keys        keyFiles
		elect       cli.Electing
		answer      cli.Answering
		known       authenticating
		tune        = tuning{known: registry.Known()}
		limit       rateLimit
		much        verbosity
		own         bool
		file        configFile
		idle        idleFlags
		metrics     metricsFlags
		process     processFlags
		migrate     leaderMigration
		format      logFormat
		encrypt     servingFlags
		contentType string
	)
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

` + controllerHelp(),
		Example: `  # against the cluster of your current kubeconfig
  setpoint manager

  # all controllers but one, saying what they do
  setpoint manager --kubeconfig ./my.kubeconfig --controllers '*,-deployment' -v`,
		Args: noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if process.version.asked() {
				return sayVersion(w)
			}
			if err := file.apply(c.Flags()); err != nil {
				return err
			}
			chosen, err := registry.Select(tune.known, choice)
			if err != nil && !errors.Is(err, registry.ErrNothingSelected) {
				return err
			}
			if err := cmp.Or(idle.check(), metrics.check(), tune.check(), limit.check(), format.into(&l)); err != nil {
				return err
			}
			l.Verbosity = much.total()
			log, err := l.Logger(w, slog.LevelInfo)
			if err != nil {
				return err
			}
			log = slog.New(missingRights{log.Handler()})
			config, err := connection(&t, &limit, contentType)
			if err != nil {
				return err
			}
			cluster, err := keys.cluster(config)
			if err != nil {
				return err
			}
			hosts := together
			if own {
				hosts = ownAccounts(config)
			}
			more, err := elect.Options()
			if err != nil {
				return err
			}
			if !tune.gates[releaseOnExit] {
				more = append(more, manager.KeepLease())
			}
			ours, err := migrate.of(chosen)
			if err != nil {
				return err
			}
			if err := cmp.Or(known.into(&answer), encrypt.into(&answer)); err != nil {
				return err
			}
			serving, err := answer.Options(c.Context(), log)
			if err != nil {
				return err
			}
			process.profile(answer.Profiles())
			sayIdle(log, &idle, &tune, choice, contentType, metrics.idle()...)
			more = slices.Concat(more, serving, process.options(), metrics.options())
			m, run, err := newManager(config, running(ours), cluster, hosts, log, more...)
			if err != nil {
				return err
			}
			sayStopped(log, chosen, run, choice)
			ctx, stop := w.UntilSignal(c.Context(), cli.Interruption{First: func() { log.Info("stopping") }, Second: func() {}})
			defer stop()
			log.Info("managing", "server", m.Client().Server(), "controllers", names(run))
			err = m.Run(ctx)
			log.Info("stopped")
			return err
		},
	}
	t.Flags(c.Flags())
	t.ServerFlag(c.Flags())
	controllersFlag(c, &choice)
	keys.flags(c.Flags())
	elect.Flags(c.Flags(), cli.LeaseDefaults{
		On: true, Key: defaultLease, Processes: "managers",
		About: "; the default is that of kube-controller-manager, so that one of both works",
	})
	answer.Flags(c.Flags(), securePort)
	l.Flags(c.Flags(), c)
	for _, flags := range []interface{ flags(*pflag.FlagSet) }{
		&known, &encrypt, &tune, &limit, &much, &file, &process, &migrate, &format, &metrics, &idle,
	} {
		flags.flags(c.Flags())
	}
	c.Flags().StringVar(&contentType, "kube-api-content-type", protobuf, "in which `form` built-in kinds travel: "+protobuf+" or application/json")
	c.Flags().BoolVar(&own, "use-service-account-credentials", false, "have each controller work as a service account of its own in kube-system, which is made if it is not there")
	cli.ExplainFlagErrors(c, nil)
	c.AddCommand(rbacCommand(w))
	return c
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

// noArguments refuses arguments, but for empty ones, which scripts leave behind.
func noArguments(c *cobra.Command, args []string) error {
	for _, arg := range args {
		if arg != "" {
			return fmt.Errorf("%q: %s takes flags alone", arg, c.CommandPath())
		}
	}
	return nil
}

func controllersFlag(c *cobra.Command, into *[]string) {
	c.Flags().StringSliceVar(into, "controllers", []string{"*"}, "controllers to run: '*' is all but those that have to be named, NAME is that one, -NAME is without that one")
	var known []string
	for _, d := range registry.Known() {
		known = append(known, d.Name+"\t"+d.Summary)
	}
	_ = c.RegisterFlagCompletionFunc("controllers", cobra.FixedCompletions(known, cobra.ShellCompDirectiveNoFileComp))
}

func controllerHelp() string {
	var text strings.Builder
	text.WriteString("The controllers are")
	for _, d := range registry.Known() {
		text.WriteString("\n  " + d.Name + ": " + d.Summary)
	}
	return text.String()
}

func names(of []*controllers.Descriptor) []string {
	var all []string
	for _, d := range of {
		all = append(all, d.Name)
	}
	return all
}

// newManager returns a manager of the chosen controllers, and those that it runs: what lacks
// something that it cannot work without is left out.
func newManager(config *rest.Config, chosen []*controllers.Descriptor, cluster controllers.Cluster, hosts hosting, log *slog.Logger, more ...manager.Option) (*manager.Manager, []*controllers.Descriptor, error) {
	aliases := map[string]string{}
	for _, d := range chosen {
		aliases[d.Alias] = d.Name
	}
	m, err := manager.New(config, append(more, manager.Log(log), manager.Aliases(aliases))...)
	if err != nil {
		return nil, nil, err
	}
	var run []*controllers.Descriptor
	for _, d := range chosen {
		d.Learn(cluster)
		if lacks := d.Lacks(); lacks != "" {
			log.Info("a controller is not started", "controller", d.Name, "lacks", lacks)
			continue
		}
		host, err := hosts(m, d)
		if err != nil {
			return nil, nil, err
		}
		c, err := d.New(host)
		if err != nil {
			return nil, nil, err
		}
		if err := m.Add(c); err != nil {
			return nil, nil, err
		}
		run = append(run, d)
	}
	return m, run, nil
}
