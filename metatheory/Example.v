(** It is not about nothing: a small server for which all that the theorem asks for holds, and a life of it.

    Its volume is one number. Three calls: read it, write it (so that it lasts, or not), and wait until all lasts. *)
From Tansy Require Export Clients.

Inductive op := Get | Put (x : nat) (sync : bool) | Sync.
Definition body (o : op) : program nat nat :=
  match o with Get => Read 0 (λ x, Ret x) | Put x _ => Write 0 x (Ret 0) | Sync => Ret 0 end.
Definition stable (o : op) : bool := match o with Put _ sync => sync | _ => false end.
Definition flush (o : op) : bool := match o with Sync => true | _ => false end.
Definition ok (r : nat) : bool := true.
Definition allowed (v : nat) (o : op) (r v' : nat) : Prop :=
  match o with Get => r = v ∧ v' = v | Put x _ => r = 0 ∧ v' = x | Sync => r = 0 ∧ v' = v end.
Definition keys : gset key := {[0]}.
Definition cell (st : nat) (k : key) : nat := st.
Definition abs (data : gmap key nat) (v : nat) : Prop := data !! 0 = Some v.
Definition free (st : nat) (k : key) : Prop := False.
Definition zero (n : nat) : Prop := n = 0.

Lemma alone : Sequential keys cell body ok free zero zero allowed abs.
Proof.
  split.
  - intros o data v r data' Ha Hr _. unfold abs in *. destruct o; simpl in *; inversion Hr; subst; simplify_eq.
    + match goal with H : run (Ret _) _ _ _ |- _ => inversion H; subst end. simplify_map_eq. eauto.
    + match goal with H : run (Ret _) _ _ _ |- _ => inversion H; subst end. eexists. split; [done|]. by simplify_map_eq.
    + eauto.
  - done.
  - intros st w data data' v Hd Hd' Hs. unfold abs. assert (0 ∈ keys) as H0 by set_solver.
    rewrite (Hd 0 H0) (Hd' 0 H0) (Hs 0 H0); [done|]. by intros [].
  - unfold abs. intros data v v' H H'. congruence.
  - intros w ->. exists 0. split; [done|]. unfold abs. apply (DataIs keys cell 0 0). set_solver.
Qed.

(** A life, from its acts, the states that its commits make, and, at each moment, lb, logs, and stab. *)
Notation act := (act op nat nat).
Notation its_life := (life (Obj:=nat) (Vol:=nat) (Op:=op) (Res:=nat)).
Definition follow (p : nat) (ph : phase (Obj:=nat) (Op:=op) (Res:=nat)) (a : act) : phase :=
  match ph, a with
  | Away, Comes _ o => Came o
  | Came o, Closes _ l r => Closed o l r p
  | Closed o l r q, Points _ n => Pointed o l r q n
  | _, _ => Over
  end.
Fixpoint phase_at (acts : list act) (vs : nat → list nat) (t i : nat) : phase :=
  match t with
  | 0 => Away
  | S t => match acts !! t with
           | Some a => if decide (of_call a = Some i) then follow (length (vs t) - 1) (phase_at acts vs t i) a else phase_at acts vs t i
           | None => phase_at acts vs t i
           end
  end.
Definition a_life acts vs lb logs stab : its_life :=
  Life acts vs lb logs stab (phase_at acts vs).
Lemma others acts vs t a i : acts !! t = Some a → of_call a ≠ Some i → phase_at acts vs (S t) i = phase_at acts vs t i.
Proof. intros Ha Hi. simpl. rewrite Ha. by rewrite decide_False. Qed.

(** A stable write, answered when its commit is durable; a read; and a write that is not stable, answered at once. *)
Definition w1 : log nat := [OpWrite 0 1].
Definition w2 : log nat := [OpWrite 0 2].
Definition a_life_of_it : its_life :=
  let acts := [Comes 1 (Put 1 true); Comes 2 Get; Closes 1 w1 0; Points 1 1; Closes 2 [OpRead 0 1] 1; Works (* a barrier *);
               Answers 1 0 1; Answers 2 1 1; Comes 3 (Put 2 false); Closes 3 w2 0; Points 3 2; Answers 3 0 1] in
  a_life acts
    (λ t, if decide (t ≤ 3) then [0] else if decide (t ≤ 10) then [0; 1] else [0; 1; 2])
    (λ t, if decide (t ≤ 5) then 0 else 1)
    (λ t, if decide (t ≤ 3) then ∅ else if decide (t ≤ 10) then {[1 := w1]} else {[1 := w1; 2 := w2]})
    (λ t, if decide (t ≤ 3) then ∅ else {[0 := 1]}).

(** The tactic looks at each moment. *)
Ltac at_each_below n H t :=
  lazymatch n with
  | 0 => simpl in H; done
  | S ?m => destruct t as [|t]; [simpl in H; simplify_eq; try done|at_each_below m H t]
  end.
Ltac at_each H t := unfold at_ in H; at_each_below 13 H t.

Lemma serial_none v : Serial keys cell ∅ [v] ∧ Complete (∅ : gmap nat (log nat)) [v].
Proof. split; [by intros n l; rewrite lookup_empty|]. intros n Hn. simpl in Hn. lia. Qed.
Lemma leads_put x v : Leads keys cell [OpWrite 0 x] v x.
Proof.
  split; [intros [|i] k o Hi; simpl in Hi; [done|by destruct i]|].
  intros k ->%elem_of_singleton. unfold Writes. simpl. by rewrite lookup_insert.
Qed.
Lemma serial_one v x : Serial keys cell {[1 := [OpWrite 0 x]]} [v; x] ∧ Complete ({[1 := [OpWrite 0 x]]} : gmap nat (log nat)) [v; x].
Proof.
  split.
  - intros n l [<- <-]%lookup_singleton_Some. split; [lia|]. exists v, x. split_and!; [done..|apply leads_put].
  - intros [|[|n]] Hn; simpl in Hn; [lia| |lia]. rewrite lookup_singleton. eauto.
Qed.
Lemma serial_two v x y : let m : gmap nat (log nat) := {[1 := [OpWrite 0 x]; 2 := [OpWrite 0 y]]} in
  Serial keys cell m [v; x; y] ∧ Complete m [v; x; y].
Proof.
  split.
  - intros n l [[<- <-]|[? [<- <-]%lookup_singleton_Some]]%lookup_insert_Some; (split; [lia|]).
    + exists v, x. split_and!; [done..|apply leads_put].
    + exists x, y. split_and!; [done..|apply leads_put].
  - intros [|[|[|n]]] Hn; simpl in Hn; [lia| | |lia]; [rewrite lookup_insert|rewrite lookup_insert_ne // lookup_singleton]; eauto.
Qed.

Lemma it_keeps_the_contracts : Contracts keys cell body ok stable flush a_life_of_it.
Proof.
  split.
  - split; [done| |by intros t a i; apply others].
    intros t a i Ha Hi. at_each Ha t; simpl in Hi; simplify_eq; simpl; repeat constructor; vm_compute; congruence.
  - intros t Ht. unfold ending in Ht; simpl in *. repeat case_decide; try lia; split_and!; try done; try lia.
    all: try (by exists []); try (by exists [1]); try (by exists [2]).
    + apply map_empty_subseteq.
    + apply insert_mono. apply map_empty_subseteq.
  - intros t _. simpl. repeat case_decide; [apply serial_none|apply serial_one|apply serial_two].
  - split.
    + intros t i n o l r p Ha Hp. at_each Ha t; vm_compute in Hp; simplify_eq; by split_and!.
    + intros t n Ht Hn Hs. unfold ending in Ht; simpl in *. repeat case_decide; try lia; try (rewrite Hn in Hs; by destruct Hs).
      * assert (t = 3) as -> by lia. exists 1. destruct Hs as [l [<- _]%lookup_singleton_Some]. done.
      * assert (t = 10) as -> by lia. exists 3. destruct Hs as [l [[<- _]|[_ [<- _]%lookup_singleton_Some]]%lookup_insert_Some]; done.
  - intros t i l r Ha. at_each Ha t; eexists; (split; [done|]); intros [|j] k o Hj; simpl in Hj; simplify_eq; try (by destruct j).
    split; [set_solver|done].
  - split.
    + intros t i r need Ha. at_each Ha t; simpl; lia.
    + intros t i r need o l p n Ha Hp Hs. at_each Ha t; vm_compute in Hp; simplify_eq; done || lia.
    + intros t i r need o l p Ha Hp Hf. at_each Ha t; vm_compute in Hp; simplify_eq.
    + intros t Ht. simpl. repeat case_decide; simpl; lia.
  - split.
    + intros t i n o l r p k Ha Hp Hs Hk. at_each Ha t; vm_compute in Hp; simplify_eq; try done.
      destruct Hk as [x Hk]. unfold Writes in Hk. simpl in Hk.
      apply lookup_insert_Some in Hk as [[<- _]|[_ Hk]]; [by exists 1|by rewrite lookup_empty in Hk].
    + intros t k n _ Hn. simpl in *. repeat case_decide; simplify_map_eq; try lia; eauto.
    + intros s t i l r r' need k n Hs Ht Htouch Hn. simpl in Hn. case_decide; [by rewrite lookup_empty in Hn|].
      apply lookup_singleton_Some in Hn as [<- <-]. at_each Ht t; lia.
Qed.

Theorem it_happens : ∃ h w L w', execution keys cell body ok stable flush free zero h w ∧ Opens L w ∧
  Contracts keys cell body ok stable flush L ∧ Recovers keys cell free L 1 w' ∧
  seen L (ending L) = [Call 1 (Put 1 true); Call 2 Get; Reply 1 0; Reply 2 1; Call 3 (Put 2 false); Reply 3 0].
Proof.
  exists [], 0, a_life_of_it, 1.
  split; [by constructor|]. split; [done|]. split; [apply it_keeps_the_contracts|]. split; [|done].
  split; [done|]. exists 0, 1. split; [|by intros k ->%elem_of_singleton].
  split; [done|]. split; [done|]. apply leads_put.
Qed.
(** So the theorem says of it: *)
Corollary clients_of_the_example : ∃ m, trace zero allowed stable flush
  [Call 1 (Put 1 true); Call 2 Get; Reply 1 0; Reply 2 1; Call 3 (Put 2 false); Reply 3 0] m.
Proof.
  refine (clients_see_the_specification keys cell body ok stable flush free zero zero allowed abs [] 0 a_life_of_it alone _ _ _ 12 _).
  - by constructor.
  - done.
  - apply it_keeps_the_contracts.
  - done.
Qed.
